-- Remove jobs. Guard: they have ended.
WITH given (id) AS (VALUES :given)
DELETE FROM workmill_jobs
WHERE id IN (SELECT id FROM given) AND state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped')
