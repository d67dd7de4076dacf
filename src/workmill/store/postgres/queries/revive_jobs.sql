-- Queue ended jobs again, as new but for their history; the lease rises, so that every ending stays one of its own. Guard: not succeeded, ended.
WITH given AS (SELECT * FROM :given (id text))
UPDATE workmill.jobs AS job
SET state = 'queued', lease = lease + 1, run_at = :now, attempt = 0, losses = 0, snoozes = 0, suspect = false, aside = NULL, aside_since = NULL,
    worker_id = NULL, claimed_at = NULL, started_at = NULL, finished_at = NULL, cancel_requested_at = NULL, expires_at = NULL,
    progress = NULL, error_class = NULL, error = NULL, result = NULL
FROM given
WHERE job.id = given.id AND CASE WHEN job.state IN ('dead', 'cancelled', 'expired', 'skipped') THEN true ELSE false END
