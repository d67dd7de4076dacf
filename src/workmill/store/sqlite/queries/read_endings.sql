-- The states of those of the jobs that have ended.
WITH given (id) AS (VALUES :given)
SELECT job.id, job.state
FROM given CROSS JOIN workmill_jobs job ON job.id = given.id
WHERE job.state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped')
