-- Take minutes from before `cutoff`, to roll them up to hours.
DELETE FROM workmill.stats
WHERE (period, start, queue, type) IN (
    SELECT period, start, queue, type FROM workmill.stats WHERE period = 60 AND start < :cutoff ORDER BY start LIMIT :limit
)
RETURNING start, queue, type, succeeded, failed, dead, wait, wait_max, run, run_max
