-- Hold a worker that is not gone, so that nobody ends it beside what is written for it: in a write transaction nobody does.
SELECT state, types, lease, concurrency_wanted FROM workmill_workers WHERE id = :worker AND state <> 'gone'
