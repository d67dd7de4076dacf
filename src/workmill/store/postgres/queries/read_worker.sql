-- A worker that is not gone.
SELECT state, types, lease, concurrency_wanted FROM workmill.workers WHERE id = :worker AND state <> 'gone'
