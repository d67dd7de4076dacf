-- Claim jobs that were chosen, each under a new lease. Guard: still queued in that queue, in time, and set aside only if chosen as such;
-- what others hold is passed over.
WITH given AS (SELECT * FROM :given (id text, queue text, apart bigint)), chosen AS MATERIALIZED (
    SELECT job.id FROM given JOIN workmill.jobs job ON job.id = given.id
    WHERE CASE WHEN job.state = 'queued' AND job.queue = given.queue AND (job.aside IS NULL OR given.apart > 0)
                    AND (job.expires_at IS NULL OR job.expires_at > :now) THEN true ELSE false END
    FOR NO KEY UPDATE OF job SKIP LOCKED
)
UPDATE workmill.jobs AS job
SET state = 'running', attempt = attempt + 1, lease = lease + 1, worker_id = :worker, claimed_at = :now, started_at = NULL, progress = NULL,
    aside = NULL, aside_since = NULL
FROM chosen
WHERE job.id = chosen.id
RETURNING -priority, run_at, job.id, lease, queue, type, payload, attempt, max_attempts, timeout, expires_at - claimed_at, traceparent, suspect
