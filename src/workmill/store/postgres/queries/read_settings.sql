-- What operators have set for queues.
SELECT name, paused, concurrency_limit FROM workmill.queues
