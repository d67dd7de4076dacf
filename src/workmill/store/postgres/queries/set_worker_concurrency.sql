-- Tell a worker how many jobs to run at once. Guard: it is live.
UPDATE workmill.workers SET concurrency_wanted = :concurrency WHERE id = :id AND state <> 'gone'
