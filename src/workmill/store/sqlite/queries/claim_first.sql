-- Claim the first jobs of a queue, each under a new lease. Guard: still queued, not aside.
UPDATE workmill_jobs
SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker_id = :worker, claimed_at = :now, started_at = NULL, progress = NULL
WHERE rowid IN (
    SELECT rowid FROM workmill_jobs WHERE queue = :queue AND state = 'queued' AND aside IS NULL
    ORDER BY priority DESC, run_at, id LIMIT :room)
RETURNING -priority, run_at, id, lease, queue, type, payload, attempt, max_attempts, timeout, expires_at - claimed_at, traceparent, suspect
