-- Which of these unique keys a live job holds.
WITH given (type, unique_key) AS (VALUES :given)
SELECT job.type, job.unique_key
FROM given CROSS JOIN workmill_jobs job INDEXED BY workmill_jobs_unique ON job.type = given.type AND job.unique_key = given.unique_key
WHERE job.unique_key IS NOT NULL AND job.state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying')
