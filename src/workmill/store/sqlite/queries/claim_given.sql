-- Claim jobs that were chosen, each under a new lease. Guard: still queued in that queue, in time, and set aside only if chosen as such.
WITH given (id, queue, apart) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker_id = :worker, claimed_at = :now, started_at = NULL, progress = NULL,
    aside = NULL, aside_since = NULL
WHERE id IN (SELECT id FROM given) AND +state = 'queued' AND (expires_at IS NULL OR +expires_at > :now)
  AND EXISTS (SELECT 1 FROM given WHERE given.id = workmill_jobs.id AND given.queue = workmill_jobs.queue AND (aside IS NULL OR given.apart))
RETURNING -priority, run_at, id, lease, queue, type, payload, attempt, max_attempts, timeout, expires_at - claimed_at, traceparent, suspect
