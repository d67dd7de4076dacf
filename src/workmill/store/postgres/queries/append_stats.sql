-- Append what a transaction did, by minute, queue and type. No guard: deltas are only added, and folded by upkeep.
INSERT INTO workmill.stat_deltas (start, queue, type, succeeded, failed, dead, wait, wait_max, run, run_max)
SELECT * FROM :given (start bigint, queue text, type text, succeeded bigint, failed bigint, dead bigint, wait text, wait_max bigint,
                      run text, run_max bigint)
