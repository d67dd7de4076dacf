-- Take the oldest deltas of the stats, to fold them.
DELETE FROM workmill_stat_deltas
WHERE seq IN (SELECT seq FROM workmill_stat_deltas ORDER BY seq LIMIT :limit)
RETURNING start, queue, type, succeeded, failed, dead, wait, wait_max, run, run_max
