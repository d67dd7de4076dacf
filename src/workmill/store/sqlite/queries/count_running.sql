-- How many jobs of queues run, over all workers: a worker's row stays while a running job names it.
WITH given (queue) AS (VALUES :given)
SELECT given.queue, (
    SELECT count(*) FROM workmill_workers worker
    CROSS JOIN workmill_jobs job INDEXED BY workmill_jobs_running
        ON job.worker_id = worker.id AND job.queue = given.queue AND job.state = 'running'
)
FROM given
