-- What could be claimed next of queues, in order, past the first so many of each. Reads at most so many rows and 1,000 overdue ones a queue.
WITH given AS (SELECT * FROM :given (queue text))
SELECT job.queue, -job.priority, job.run_at, job.id
FROM given CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT next.queue, next.priority, next.run_at, next.id, next.expires_at FROM workmill.jobs next
        WHERE next.queue = given.queue AND next.state = 'queued' AND next.aside IS NULL
        ORDER BY next.priority DESC, next.run_at, next.id LIMIT :past::bigint + :room::bigint + 1000
    ) AS head
    WHERE expires_at IS NULL OR expires_at > :now ORDER BY priority DESC, run_at, id LIMIT :room::bigint OFFSET :past::bigint
) AS job
