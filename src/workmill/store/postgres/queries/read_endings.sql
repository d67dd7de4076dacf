-- The states of those of the jobs that have ended.
WITH given AS (SELECT * FROM :given (id text))
SELECT job.id, job.state
FROM given JOIN workmill.jobs job ON job.id = given.id
WHERE job.state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped')
