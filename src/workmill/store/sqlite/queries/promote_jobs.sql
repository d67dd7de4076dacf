-- Queue jobs whose time has come; suspects go aside. Guard: they still wait for their time.
WITH given (id) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'queued', aside = CASE WHEN suspect THEN 'suspect' END, aside_since = CASE WHEN suspect THEN :now END
WHERE id IN (SELECT id FROM given) AND state IN ('scheduled', 'retrying')
