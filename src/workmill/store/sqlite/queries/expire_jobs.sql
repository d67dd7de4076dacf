-- End jobs that did not start before their deadline. Guard: they have still not started.
WITH given (id) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'expired', finished_at = :now, aside = NULL, aside_since = NULL
WHERE id IN (SELECT id FROM given) AND state IN ('blocked', 'scheduled', 'queued', 'retrying')
