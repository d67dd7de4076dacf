-- What a job's own row says of its current or latest run, and how many older ones its history has dropped.
SELECT job.state, job.attempt, job.lease, job.worker_id, worker.name, coalesce(job.started_at, job.claimed_at), job.finished_at, job.omitted
FROM workmill.jobs job LEFT JOIN workmill.workers worker ON worker.id = job.worker_id
WHERE job.id = :id
