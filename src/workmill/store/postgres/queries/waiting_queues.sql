-- Those of the queues that have something to claim (or may have it, when so few are asked for that a look is not worth its time), and,
-- marked, those that have something set aside.
WITH given AS (SELECT * FROM :given (queue text))
SELECT queue, 0 FROM given
WHERE :few::bigint > 0
   OR EXISTS (SELECT 1 FROM workmill.jobs job WHERE job.queue = given.queue AND job.state = 'queued' AND job.aside IS NULL)
UNION ALL
SELECT queue, 1 FROM given
WHERE EXISTS (SELECT 1 FROM workmill.jobs job WHERE job.queue = given.queue AND job.state = 'queued' AND job.aside IS NOT NULL)
