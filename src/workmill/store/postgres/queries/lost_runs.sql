-- What a loss is decided on. Guard: still running, for a worker that is gone. What others hold is passed over.
WITH given AS (SELECT * FROM :given (id text))
SELECT job.id, job.lease, job.worker_id, job.queue, job.type, job.attempt, job.losses, job.max_losses, job.suspect,
       job.cancel_requested_at IS NOT NULL, coalesce(job.started_at, job.claimed_at)
FROM given JOIN workmill.jobs job ON job.id = given.id
WHERE CASE WHEN job.state = 'running' THEN true ELSE false END
  AND NOT EXISTS (SELECT 1 FROM workmill.workers worker WHERE worker.id = job.worker_id AND worker.state <> 'gone')
FOR UPDATE OF job SKIP LOCKED
