-- Store how far runs have come. Guard: id, lease and worker, and still running.
WITH given (id, lease, progress) AS (VALUES :given)
UPDATE workmill_jobs SET progress = given.progress
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.lease = given.lease
  AND +workmill_jobs.worker_id = :worker AND +workmill_jobs.state = 'running'
