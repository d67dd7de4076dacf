-- The live jobs that hold unique keys.
WITH given (type, unique_key) AS (VALUES :given)
SELECT job.id, job.state, job.queue, job.type, job.unique_key
FROM given CROSS JOIN workmill_jobs job INDEXED BY workmill_jobs_unique ON job.type = given.type AND job.unique_key = given.unique_key
WHERE job.unique_key IS NOT NULL AND job.state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying')
