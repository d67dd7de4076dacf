-- Cancel jobs that wait. Guard: they still do.
WITH given (id) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'cancelled', finished_at = :now, aside = NULL, aside_since = NULL, cancel_requested_at = :now
WHERE id IN (SELECT id FROM given) AND state IN ('blocked', 'scheduled', 'queued', 'retrying')
