-- Move jobs that wait to another time. Guard: they still wait for their time or for a worker.
WITH given (id, state, run_at, aside) AS (VALUES :given)
UPDATE workmill_jobs
SET state = given.state, run_at = given.run_at, aside = given.aside,
    aside_since = CASE WHEN given.aside IS NOT NULL THEN coalesce(aside_since, :now) END
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.state IN ('scheduled', 'queued', 'retrying')
