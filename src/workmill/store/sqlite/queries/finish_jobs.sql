-- Finish runs that succeeded. Guard: id, lease and worker, and still running; who was presumed dead changes nothing.
WITH given (id, lease, result, waited) AS (VALUES :given)
UPDATE workmill_jobs
SET state = 'succeeded', result = given.result, finished_at = :now, started_at = min(claimed_at + given.waited, :now),
    suspect = 0, error_class = NULL, error = NULL
FROM given
WHERE workmill_jobs.id = given.id AND workmill_jobs.lease = given.lease
  AND +workmill_jobs.worker_id = :worker AND +workmill_jobs.state = 'running'
RETURNING id, queue, type, coalesce(claimed_at - run_at, 0)
