-- Move jobs that wait to another time. Guard: they still wait for their time or for a worker.
WITH given AS (SELECT * FROM :given (id text, state text, run_at bigint, aside text))
UPDATE workmill.jobs AS job
SET state = given.state, run_at = given.run_at, aside = given.aside,
    aside_since = CASE WHEN given.aside IS NOT NULL THEN coalesce(aside_since, :now) END
FROM given
WHERE job.id = given.id AND CASE WHEN job.state IN ('scheduled', 'queued', 'retrying') THEN true ELSE false END
