-- Whether a worker runs a suspect.
SELECT 1 FROM workmill.jobs WHERE worker_id = :worker AND state = 'running' AND suspect LIMIT 1
