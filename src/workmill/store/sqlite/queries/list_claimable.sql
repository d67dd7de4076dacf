-- What could be claimed next of queues, in order, past the first so many of each. Reads at most so many rows and 1,000 overdue ones a queue.
WITH given (queue) AS (VALUES :given)
SELECT job.queue, -job.priority, job.run_at, job.id
FROM given CROSS JOIN workmill_jobs job ON job.rowid IN (
    SELECT number FROM (
        SELECT next.rowid AS number, next.expires_at FROM workmill_jobs next
        WHERE next.queue = given.queue AND next.state = 'queued' AND next.aside IS NULL
        ORDER BY next.priority DESC, next.run_at, next.id LIMIT :past + :room + 1000
    ) WHERE expires_at IS NULL OR expires_at > :now LIMIT :room OFFSET :past)
