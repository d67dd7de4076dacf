-- End jobs that did not start before their deadline. Guard: they have still not started.
WITH given AS (SELECT * FROM :given (id text))
UPDATE workmill.jobs AS job
SET state = 'expired', finished_at = :now, aside = NULL, aside_since = NULL
FROM given
WHERE job.id = given.id AND CASE WHEN job.state IN ('blocked', 'scheduled', 'queued', 'retrying') THEN true ELSE false END
