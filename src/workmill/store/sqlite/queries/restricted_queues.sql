-- Queues that are paused or limited.
SELECT name, paused, concurrency_limit FROM workmill_queues INDEXED BY workmill_queues_restricted
WHERE paused <> 0 OR concurrency_limit IS NOT NULL
