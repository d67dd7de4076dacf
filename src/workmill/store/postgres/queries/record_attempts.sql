-- Add runs that did not succeed to the history. Guard: one row a lease.
INSERT INTO workmill.attempts (job_id, lease, number, kind, worker_id, started_at, ended_at, error_class, message, traceback, next_run_at)
SELECT * FROM :given (job_id text, lease bigint, number bigint, kind text, worker_id text, started_at bigint, ended_at bigint,
                      error_class text, message text, traceback text, next_run_at bigint)
