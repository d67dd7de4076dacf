-- What a loss is decided on. Guard: still running, for a worker that is gone.
WITH given (id) AS (VALUES :given)
SELECT job.id, job.lease, job.worker_id, job.queue, job.type, job.attempt, job.losses, job.max_losses, job.suspect,
       job.cancel_requested_at IS NOT NULL, coalesce(job.started_at, job.claimed_at)
FROM given CROSS JOIN workmill_jobs job ON job.id = given.id
WHERE job.state = 'running'
  AND NOT EXISTS (SELECT 1 FROM workmill_workers worker WHERE worker.id = job.worker_id AND worker.state <> 'gone')
