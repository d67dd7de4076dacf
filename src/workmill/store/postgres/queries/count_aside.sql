-- How many jobs of each queue are set aside, as far as `limit`.
WITH given AS (SELECT * FROM :given (queue text))
SELECT given.queue, (
    SELECT count(*) FROM (
        SELECT 1 FROM workmill.jobs WHERE queue = given.queue AND state = 'queued' AND aside IS NOT NULL LIMIT :limit
    ) AS found
)
FROM given
