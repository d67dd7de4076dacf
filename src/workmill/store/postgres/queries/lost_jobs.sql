-- Running jobs whose worker is gone, worker by worker, the suspects last: while one is left to take back, the others can see it.
WITH RECURSIVE holder (id) AS (
    SELECT (SELECT worker_id FROM workmill.jobs WHERE state = 'running' ORDER BY worker_id LIMIT 1)
    UNION ALL
    SELECT (SELECT worker_id FROM workmill.jobs WHERE state = 'running' AND worker_id > holder.id ORDER BY worker_id LIMIT 1)
    FROM holder WHERE holder.id IS NOT NULL
)
SELECT job.id
FROM holder JOIN workmill.jobs job ON job.state = 'running' AND job.worker_id = holder.id
WHERE NOT EXISTS (SELECT 1 FROM workmill.workers worker WHERE worker.id = holder.id AND worker.state <> 'gone')
ORDER BY job.worker_id, job.suspect
LIMIT :limit
