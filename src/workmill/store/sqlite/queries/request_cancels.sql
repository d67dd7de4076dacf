-- Ask running jobs to stop. Guard: the same lease still runs.
WITH given (id, lease) AS (VALUES :given)
UPDATE workmill_jobs
SET cancel_requested_at = :now
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.lease = given.lease AND workmill_jobs.state = 'running'
