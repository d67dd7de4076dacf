-- Queue ended jobs again, as new but for their history; the lease rises, so that every ending stays one of its own. Guard: not succeeded, ended.
WITH given (id) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'queued', lease = lease + 1, run_at = :now, attempt = 0, losses = 0, snoozes = 0, suspect = 0, aside = NULL, aside_since = NULL,
    worker_id = NULL, claimed_at = NULL, started_at = NULL, finished_at = NULL, cancel_requested_at = NULL, expires_at = NULL,
    progress = NULL, error_class = NULL, error = NULL, result = NULL
WHERE id IN (SELECT id FROM given) AND state IN ('dead', 'cancelled', 'expired', 'skipped')
