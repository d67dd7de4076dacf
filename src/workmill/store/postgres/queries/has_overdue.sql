-- Whether any job has passed its deadline without a start.
SELECT 1 FROM workmill.jobs
WHERE expires_at IS NOT NULL AND expires_at <= :now AND state IN ('blocked', 'scheduled', 'queued', 'retrying')
LIMIT 1
