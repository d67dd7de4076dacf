-- Remove jobs. Guard: they have ended.
WITH given AS (SELECT * FROM :given (id text))
DELETE FROM workmill.jobs AS job
USING given
WHERE job.id = given.id AND CASE WHEN job.state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped') THEN true ELSE false END
