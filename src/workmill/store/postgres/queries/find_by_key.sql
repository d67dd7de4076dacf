-- The live jobs that hold unique keys.
WITH given AS (SELECT * FROM :given (type text, unique_key text))
SELECT job.id, job.state, job.queue, job.type, job.unique_key
FROM given JOIN workmill.jobs job ON job.type = given.type AND job.unique_key = given.unique_key
WHERE job.unique_key IS NOT NULL AND job.state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying')
