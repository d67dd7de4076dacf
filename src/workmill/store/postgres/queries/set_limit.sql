-- Set or lift the limit of a queue.
INSERT INTO workmill.queues (name, concurrency_limit) VALUES (:queue, :limit)
ON CONFLICT (name) DO UPDATE SET concurrency_limit = excluded.concurrency_limit
