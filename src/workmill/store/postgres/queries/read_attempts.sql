-- The runs of a job that did not succeed, oldest first.
SELECT attempt.number, attempt.lease, attempt.kind, attempt.worker_id, worker.name, attempt.started_at, attempt.ended_at,
       attempt.error_class, attempt.message, attempt.traceback, attempt.next_run_at
FROM workmill.attempts attempt LEFT JOIN workmill.workers worker ON worker.id = attempt.worker_id
WHERE attempt.job_id = :id
ORDER BY attempt.lease
