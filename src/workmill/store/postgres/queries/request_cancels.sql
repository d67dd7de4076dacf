-- Ask running jobs to stop. Guard: the same lease still runs.
WITH given AS (SELECT * FROM :given (id text, lease bigint))
UPDATE workmill.jobs AS job
SET cancel_requested_at = :now
FROM given
WHERE job.id = given.id AND CASE WHEN job.lease = given.lease AND job.state = 'running' THEN true ELSE false END
