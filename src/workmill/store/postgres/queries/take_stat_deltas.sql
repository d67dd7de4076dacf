-- Take the oldest deltas of the stats, to fold them.
DELETE FROM workmill.stat_deltas
WHERE seq IN (SELECT seq FROM workmill.stat_deltas ORDER BY seq LIMIT :limit)
RETURNING start, queue, type, succeeded, failed, dead, wait, wait_max, run, run_max
