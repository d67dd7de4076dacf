-- What is on record of runs that are no longer this worker's: the kind of outcome that the same worker reported under the same lease.
WITH given (id, lease) AS (VALUES :given)
SELECT job.id, job.state,
       CASE WHEN job.state = 'succeeded' AND job.lease = given.lease AND job.worker_id = :worker THEN 'succeeded'
            ELSE (SELECT kind FROM workmill_attempts attempt
                  WHERE attempt.job_id = given.id AND attempt.lease = given.lease AND attempt.worker_id = :worker) END
FROM given CROSS JOIN workmill_jobs job ON job.id = given.id
