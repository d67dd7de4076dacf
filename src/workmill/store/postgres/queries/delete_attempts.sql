-- Remove the history of jobs that are removed.
WITH given AS (SELECT * FROM :given (id text))
DELETE FROM workmill.attempts WHERE job_id IN (SELECT id FROM given)
