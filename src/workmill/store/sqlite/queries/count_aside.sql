-- How many jobs of each queue are set aside, as far as `limit`.
WITH given (queue) AS (VALUES :given)
SELECT given.queue, (
    SELECT count(*) FROM (
        SELECT 1 FROM workmill_jobs WHERE queue = given.queue AND state = 'queued' AND aside IS NOT NULL LIMIT :limit
    )
)
FROM given
