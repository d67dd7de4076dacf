-- Finish runs that succeeded. Guard: id, lease and worker, and still running; who was presumed dead changes nothing.
WITH given AS (SELECT * FROM :given (id text, lease bigint, result text, waited bigint))
UPDATE workmill.jobs AS job
SET state = 'succeeded', result = given.result, finished_at = :now, started_at = least(claimed_at + given.waited, :now),
    suspect = false, error_class = NULL, error = NULL
FROM given
WHERE job.id = given.id
  AND CASE WHEN job.lease = given.lease AND job.worker_id = :worker AND job.state = 'running' THEN true ELSE false END
RETURNING job.id, queue, type, coalesce(claimed_at - run_at, 0)
