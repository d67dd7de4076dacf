-- Workers that have long been gone and are named by no running job.
SELECT id FROM workmill.workers worker
WHERE state = 'gone' AND seen_at < :cutoff
  AND NOT EXISTS (SELECT 1 FROM workmill.jobs job WHERE job.state = 'running' AND job.worker_id = worker.id)
LIMIT :limit
