-- End jobs that nothing can move, with the reason. Guard: the same lease, and not ended.
WITH given AS (SELECT * FROM :given (id text, lease bigint, error_class text, error text))
UPDATE workmill.jobs AS job
SET state = 'dead', finished_at = :now, aside = NULL, aside_since = NULL, error_class = given.error_class, error = given.error
FROM given
WHERE job.id = given.id
  AND CASE WHEN job.lease = given.lease AND job.state IN ('scheduled', 'queued', 'running', 'retrying') THEN true ELSE false END
