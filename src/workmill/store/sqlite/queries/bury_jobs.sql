-- End jobs that nothing can move, with the reason. Guard: the same lease, and not ended.
WITH given (id, lease, error_class, error) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'dead', finished_at = :now, aside = NULL, aside_since = NULL, error_class = given.error_class, error = given.error
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.lease = given.lease
  AND workmill_jobs.state IN ('scheduled', 'queued', 'running', 'retrying')
