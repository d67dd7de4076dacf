-- How many jobs of a queue run, over all workers: a worker's row stays while a running job names it.
SELECT count(*)
FROM workmill.workers worker
JOIN workmill.jobs job ON job.worker_id = worker.id AND job.queue = :queue AND job.state = 'running'
