-- Cancel jobs that wait. Guard: they still do.
WITH given AS (SELECT * FROM :given (id text))
UPDATE workmill.jobs AS job
SET state = 'cancelled', finished_at = :now, aside = NULL, aside_since = NULL, cancel_requested_at = :now
FROM given
WHERE job.id = given.id AND CASE WHEN job.state IN ('blocked', 'scheduled', 'queued', 'retrying') THEN true ELSE false END
