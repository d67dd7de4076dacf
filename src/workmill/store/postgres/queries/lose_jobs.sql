-- Take back runs whose worker was lost, without charging the attempt. Guard: the same lease still runs.
WITH given AS (
    SELECT * FROM :given (id text, lease bigint, state text, losses bigint, run_at bigint, finished_at bigint, error_class text, error text)
)
UPDATE workmill.jobs AS job
SET state = given.state, losses = given.losses, attempt = attempt - 1, suspect = given.finished_at IS NULL,
    run_at = coalesce(given.run_at, job.run_at), finished_at = given.finished_at,
    error_class = coalesce(given.error_class, job.error_class),
    error = CASE WHEN given.error_class IS NULL THEN job.error ELSE given.error END
FROM given
WHERE job.id = given.id AND CASE WHEN job.lease = given.lease AND job.state = 'running' THEN true ELSE false END
