-- Those of the queues that have something set aside.
WITH given (queue) AS (VALUES :given)
SELECT queue FROM given
WHERE EXISTS (SELECT 1 FROM workmill_jobs job WHERE job.queue = given.queue AND job.state = 'queued' AND job.aside IS NOT NULL)
