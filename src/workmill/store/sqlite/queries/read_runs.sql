-- What the ends of runs are decided on. Guard: id, lease and worker, and still running.
WITH given (id, lease) AS (VALUES :given)
SELECT job.id, job.lease, job.queue, job.type, job.attempt, job.max_attempts, job.snoozes, job.backoff, job.cancel_requested_at IS NOT NULL,
       job.run_at, coalesce(job.claimed_at, :now), job.priority
FROM given CROSS JOIN workmill_jobs job ON job.id = given.id AND job.lease = given.lease
WHERE +job.worker_id = :worker AND +job.state = 'running'
