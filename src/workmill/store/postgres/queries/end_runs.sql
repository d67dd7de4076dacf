-- End runs that failed or were given back, as it was decided. Guard: id, lease and worker, and still running.
WITH given AS (
    SELECT * FROM :given (id text, lease bigint, state text, run_at bigint, attempt bigint, snoozes bigint, aside text, started_at bigint,
                          finished_at bigint, error_class text, error text)
)
UPDATE workmill.jobs AS job
SET state = given.state, run_at = given.run_at, attempt = given.attempt, snoozes = given.snoozes, suspect = false,
    aside = given.aside, aside_since = CASE WHEN given.aside IS NULL THEN NULL ELSE :now::bigint END,
    started_at = given.started_at, finished_at = given.finished_at,
    error_class = coalesce(given.error_class, job.error_class),
    error = CASE WHEN given.error_class IS NULL THEN job.error ELSE given.error END
FROM given
WHERE job.id = given.id
  AND CASE WHEN job.lease = given.lease AND job.worker_id = :worker AND job.state = 'running' THEN true ELSE false END
