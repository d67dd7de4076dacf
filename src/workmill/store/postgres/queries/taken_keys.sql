-- Which of these unique keys a live job holds.
WITH given AS (SELECT * FROM :given (type text, unique_key text))
SELECT job.type, job.unique_key
FROM given JOIN workmill.jobs job ON job.type = given.type AND job.unique_key = given.unique_key
WHERE job.unique_key IS NOT NULL AND job.state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying')
