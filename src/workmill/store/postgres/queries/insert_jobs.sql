-- Insert jobs. Guard: a taken id or a taken unique key inserts nothing; what was inserted is returned.
INSERT INTO workmill.jobs (id, queue, type, state, priority, run_at, expires_at, created_at, timeout, max_attempts, max_losses, backoff,
                           unique_key, tags, meta, webhook, traceparent, payload)
SELECT * FROM :given (id text, queue text, type text, state text, priority bigint, run_at bigint, expires_at bigint, created_at bigint,
                      timeout float, max_attempts bigint, max_losses bigint, backoff text, unique_key text, tags text, meta text,
                      webhook text, traceparent text, payload text)
ON CONFLICT DO NOTHING
RETURNING id
