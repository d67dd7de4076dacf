-- The stats that are kept for these periods, queues and types.
WITH given AS (SELECT * FROM :given (period bigint, start bigint, queue text, type text))
SELECT stats.start, stats.queue, stats.type, succeeded, failed, dead, wait, wait_max, run, run_max
FROM given JOIN workmill.stats stats
  ON stats.period = given.period AND stats.start = given.start AND stats.queue = given.queue AND stats.type = given.type
