-- End runs that failed or were given back, as it was decided. Guard: id, lease and worker, and still running.
WITH given (id, lease, state, run_at, attempt, snoozes, aside, started_at, finished_at, error_class, error) AS (VALUES :given)
UPDATE workmill_jobs
SET state = given.state, run_at = given.run_at, attempt = given.attempt, snoozes = given.snoozes, suspect = 0,
    aside = given.aside, aside_since = CASE WHEN given.aside IS NULL THEN NULL ELSE :now END,
    started_at = given.started_at, finished_at = given.finished_at,
    error_class = coalesce(given.error_class, workmill_jobs.error_class),
    error = CASE WHEN given.error_class IS NULL THEN workmill_jobs.error ELSE given.error END
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.lease = given.lease
  AND +workmill_jobs.worker_id = :worker AND +workmill_jobs.state = 'running'
