-- How many jobs of queues run, over all workers: a worker's row stays while a running job names it.
WITH given AS (SELECT * FROM :given (queue text))
SELECT given.queue, (
    SELECT count(*) FROM workmill.workers worker
    JOIN workmill.jobs job ON job.worker_id = worker.id AND job.queue = given.queue AND job.state = 'running'
)
FROM given
