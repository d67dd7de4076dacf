-- What must be true between rows.
SELECT 'I7 running for a worker that nobody knows: ' || job.id
FROM workmill.jobs job
WHERE job.state = 'running' AND NOT EXISTS (SELECT 1 FROM workmill.workers worker WHERE worker.id = job.worker_id)
UNION ALL
SELECT 'I7 more than one suspect held: ' || worker_id FROM workmill.jobs WHERE state = 'running' AND suspect GROUP BY worker_id HAVING count(*) > 1
UNION ALL
SELECT 'I14 more than one live job of the key: ' || type || '/' || unique_key
FROM workmill.jobs
WHERE unique_key IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying')
GROUP BY type, unique_key HAVING count(*) > 1
UNION ALL
SELECT 'I3 history ahead of the lease: ' || job.id
FROM workmill.attempts attempt JOIN workmill.jobs job ON job.id = attempt.job_id
WHERE attempt.lease > job.lease OR attempt.lease = job.lease AND job.state IN ('running', 'succeeded')
UNION ALL
SELECT 'history without a job: ' || job_id
FROM workmill.attempts WHERE NOT EXISTS (SELECT 1 FROM workmill.jobs job WHERE job.id = job_id)
UNION ALL
SELECT 'figures below zero: ' || queue || '/' || type
FROM (SELECT queue, type, succeeded, failed, dead FROM workmill.stats UNION ALL SELECT queue, type, succeeded, failed, dead FROM workmill.stat_deltas) AS figures
WHERE succeeded < 0 OR failed < 0 OR dead < 0
LIMIT :limit
