-- Jobs that did not start before their deadline.
SELECT id FROM workmill.jobs
WHERE expires_at <= :now AND state IN ('blocked', 'scheduled', 'queued', 'retrying')
ORDER BY expires_at LIMIT :limit
