-- Queues that are paused or limited.
SELECT name, paused, concurrency_limit FROM workmill.queues
WHERE paused <> 0 OR concurrency_limit IS NOT NULL
