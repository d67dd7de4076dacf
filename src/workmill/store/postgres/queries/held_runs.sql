-- The runs of a worker.
SELECT id, lease, claimed_at, cancel_requested_at IS NOT NULL FROM workmill.jobs WHERE worker_id = :worker AND state = 'running'
