-- What the ends of runs are decided on. Guard: id, lease and worker, and still running. They are held, in the order of their ids.
WITH given AS (SELECT * FROM :given (id text, lease bigint))
SELECT job.id, job.lease, job.queue, job.type, job.attempt, job.max_attempts, job.snoozes, job.backoff, job.cancel_requested_at IS NOT NULL,
       job.run_at, coalesce(job.claimed_at, :now), job.priority
FROM given JOIN workmill.jobs job ON job.id = given.id
WHERE CASE WHEN job.lease = given.lease AND job.worker_id = :worker AND job.state = 'running' THEN true ELSE false END
ORDER BY job.id
FOR UPDATE OF job
