-- Claim jobs that were chosen, each under a new lease. Guard: still queued.
WITH given (id) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker_id = :worker, claimed_at = :now, started_at = NULL, progress = NULL,
    aside = NULL, aside_since = NULL
WHERE id IN (SELECT id FROM given) AND +state = 'queued'
RETURNING -priority, run_at, id, lease, queue, type, payload, attempt, max_attempts, timeout, expires_at - claimed_at, traceparent, suspect
