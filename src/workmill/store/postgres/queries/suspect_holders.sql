-- Which of these workers hold a suspect.
WITH given AS (SELECT * FROM :given (worker_id text))
SELECT DISTINCT job.worker_id
FROM given JOIN workmill.jobs job ON job.worker_id = given.worker_id
WHERE job.state = 'running' AND job.suspect
