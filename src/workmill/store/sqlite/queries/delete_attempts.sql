-- Remove the history of jobs that are removed.
WITH given (id) AS (VALUES :given)
DELETE FROM workmill_attempts WHERE job_id IN (SELECT id FROM given)
