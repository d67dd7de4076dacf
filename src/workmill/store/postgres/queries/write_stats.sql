-- Keep merged stats in the place of those that were read for it in this transaction.
INSERT INTO workmill.stats (period, start, queue, type, succeeded, failed, dead, wait, wait_max, run, run_max)
SELECT * FROM :given (period bigint, start bigint, queue text, type text, succeeded bigint, failed bigint, dead bigint, wait text,
                      wait_max bigint, run text, run_max bigint)
ON CONFLICT (period, start, queue, type) DO UPDATE SET
    succeeded = excluded.succeeded, failed = excluded.failed, dead = excluded.dead,
    wait = excluded.wait, wait_max = excluded.wait_max, run = excluded.run, run_max = excluded.run_max
