-- Pause or resume a queue.
INSERT INTO workmill.queues (name, paused) VALUES (:queue, :paused) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused
