-- What happened since the beginnings of a window: minutes, the hours they were rolled up to, and what is not folded yet.
SELECT queue, succeeded, failed, dead, wait, wait_max, run, run_max FROM workmill.stats WHERE period = 60 AND start >= :minutes_from
UNION ALL
SELECT queue, succeeded, failed, dead, wait, wait_max, run, run_max FROM workmill.stats WHERE period = 3600 AND start >= :hours_from
UNION ALL
SELECT queue, succeeded, failed, dead, wait, wait_max, run, run_max FROM workmill.stat_deltas WHERE start >= :minutes_from
