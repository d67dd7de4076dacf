-- Add runs that did not succeed to the history. Guard: one row a lease.
INSERT INTO workmill_attempts (job_id, lease, number, kind, worker_id, started_at, ended_at, error_class, message, traceback, next_run_at)
VALUES :given
