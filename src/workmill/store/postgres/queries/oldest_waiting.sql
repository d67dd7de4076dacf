-- Since when the longest waiting job of each queue has been due: one look at the index for each priority that is there.
WITH RECURSIVE given AS (SELECT * FROM :given (queue text)), level (queue, priority) AS (
    SELECT given.queue, (
        SELECT priority FROM workmill.jobs
        WHERE queue = given.queue AND state = 'queued' AND aside IS NULL ORDER BY priority DESC LIMIT 1
    )
    FROM given
    UNION ALL
    SELECT level.queue, (
        SELECT priority FROM workmill.jobs
        WHERE queue = level.queue AND state = 'queued' AND aside IS NULL AND priority < level.priority ORDER BY priority DESC LIMIT 1
    )
    FROM level WHERE level.priority IS NOT NULL
)
SELECT level.queue, min((
    SELECT run_at FROM workmill.jobs
    WHERE queue = level.queue AND state = 'queued' AND aside IS NULL AND priority = level.priority ORDER BY run_at LIMIT 1
))
FROM level WHERE level.priority IS NOT NULL
GROUP BY level.queue
