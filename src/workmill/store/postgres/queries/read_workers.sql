-- The live workers and, when asked for, those that are gone but named by running jobs; with how much each runs.
SELECT worker.id, worker.name, worker.host, worker.pid, worker.version, worker.state, worker.queues,
       coalesce(worker.concurrency_wanted, worker.concurrency), count(job.worker_id), worker.lease, worker.joined_at, worker.seen_at
FROM workmill.workers worker
LEFT JOIN workmill.jobs job ON job.worker_id = worker.id AND job.state = 'running'
WHERE :gone::bigint <> 0 OR worker.state <> 'gone'
GROUP BY worker.id
HAVING worker.state <> 'gone' OR count(job.worker_id) > 0
ORDER BY worker.name, worker.id
