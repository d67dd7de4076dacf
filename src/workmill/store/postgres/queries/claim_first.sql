-- Claim the first jobs of a queue, each under a new lease. Guard: still queued, not aside; what others hold is passed over.
WITH chosen AS MATERIALIZED (
    SELECT id FROM workmill.jobs WHERE queue = :queue AND state = 'queued' AND aside IS NULL
    ORDER BY priority DESC, run_at, id LIMIT :room FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE workmill.jobs AS job
SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker_id = :worker, claimed_at = :now, started_at = NULL, progress = NULL
FROM chosen
WHERE job.id = chosen.id
RETURNING -priority, run_at, job.id, lease, queue, type, payload, attempt, max_attempts, timeout, expires_at - claimed_at, traceparent, suspect
