-- The stats that are kept for these periods, queues and types.
WITH given (period, start, queue, type) AS (VALUES :given)
SELECT stats.start, stats.queue, stats.type, succeeded, failed, dead, wait, wait_max, run, run_max
FROM given CROSS JOIN workmill_stats stats
  ON stats.period = given.period AND stats.start = given.start AND stats.queue = given.queue AND stats.type = given.type
