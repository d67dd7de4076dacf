-- Which of these workers hold a suspect.
WITH given (worker_id) AS (VALUES :given)
SELECT DISTINCT job.worker_id
FROM given CROSS JOIN workmill_jobs job INDEXED BY workmill_jobs_running ON job.worker_id = given.worker_id
WHERE job.state = 'running' AND job.suspect
