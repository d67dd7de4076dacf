-- Whether a worker runs a suspect.
SELECT 1 FROM workmill_jobs WHERE worker_id = :worker AND state = 'running' AND suspect <> 0 LIMIT 1
