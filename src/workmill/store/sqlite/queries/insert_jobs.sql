-- Insert jobs. Guard: a taken id or a taken unique key inserts nothing; what was inserted is returned.
INSERT INTO workmill_jobs (id, queue, type, state, priority, run_at, expires_at, created_at, timeout, max_attempts, max_losses, backoff,
                           unique_key, tags, meta, webhook, traceparent, payload)
VALUES :given
ON CONFLICT DO NOTHING
RETURNING id
