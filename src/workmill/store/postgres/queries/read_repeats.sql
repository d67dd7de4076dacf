-- What is on record of runs that are no longer this worker's: the kind of outcome that the same worker reported under the same lease.
WITH given AS (SELECT * FROM :given (id text, lease bigint))
SELECT job.id, job.state,
       CASE WHEN job.state = 'succeeded' AND job.lease = given.lease AND job.worker_id = :worker THEN 'succeeded'
            ELSE (SELECT kind FROM workmill.attempts attempt
                  WHERE attempt.job_id = given.id AND attempt.lease = given.lease AND attempt.worker_id = :worker) END
FROM given JOIN workmill.jobs job ON job.id = given.id
