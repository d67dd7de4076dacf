-- Take back runs whose worker was lost, without charging the attempt. Guard: the same lease still runs.
WITH given (id, lease, state, losses, run_at, finished_at, error_class, error) AS (VALUES :given)
UPDATE workmill_jobs
SET state = given.state, losses = given.losses, attempt = attempt - 1, suspect = given.finished_at IS NULL,
    run_at = coalesce(given.run_at, workmill_jobs.run_at), finished_at = given.finished_at,
    error_class = coalesce(given.error_class, workmill_jobs.error_class),
    error = CASE WHEN given.error_class IS NULL THEN workmill_jobs.error ELSE given.error END
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.lease = given.lease AND workmill_jobs.state = 'running'
