-- The queues that have something to claim, and whether some of it is set aside; one step of an index a queue.
WITH RECURSIVE ready (queue) AS (
    SELECT min(queue) FROM workmill.jobs WHERE state = 'queued' AND aside IS NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM workmill.jobs WHERE state = 'queued' AND aside IS NULL AND queue > ready.queue)
    FROM ready WHERE ready.queue IS NOT NULL
), apart (queue) AS (
    SELECT min(queue) FROM workmill.jobs WHERE state = 'queued' AND aside IS NOT NULL
    UNION ALL
    SELECT (SELECT min(queue) FROM workmill.jobs WHERE state = 'queued' AND aside IS NOT NULL AND queue > apart.queue)
    FROM apart WHERE apart.queue IS NOT NULL
)
SELECT queue, 0 FROM ready WHERE queue IS NOT NULL UNION ALL SELECT queue, 1 FROM apart WHERE queue IS NOT NULL
