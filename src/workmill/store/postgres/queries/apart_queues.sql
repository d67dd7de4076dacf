-- Those of the queues that have something set aside.
WITH given AS (SELECT * FROM :given (queue text))
SELECT queue FROM given
WHERE EXISTS (SELECT 1 FROM workmill.jobs job WHERE job.queue = given.queue AND job.state = 'queued' AND job.aside IS NOT NULL)
