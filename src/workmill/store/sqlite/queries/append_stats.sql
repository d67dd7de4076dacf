-- Append what a transaction did, by minute, queue and type. No guard: deltas are only added, and folded by upkeep.
INSERT INTO workmill_stat_deltas (start, queue, type, succeeded, failed, dead, wait, wait_max, run, run_max) VALUES :given
