-- The next candidates below a cursor, the newest ones, and whether each matches a selection. The first arm is every job, each other one an index
-- of some states; Python opens what is shortest for the states asked for.
WITH candidate (id) AS (
    SELECT id FROM workmill_jobs WHERE :everywhere AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_claim
    WHERE :queued AND state = 'queued' AND aside IS NULL AND queue >= :first_queue AND queue <= :last_queue AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_aside
    WHERE :queued AND state = 'queued' AND aside IS NOT NULL AND queue >= :first_queue AND queue <= :last_queue AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_due
    WHERE :waiting AND state IN ('scheduled', 'retrying') AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_running WHERE :running AND state = 'running' AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_dead
    WHERE :dead AND :error_class IS NULL AND state = 'dead' AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_dead
    WHERE :dead AND error_class = :error_class AND state = 'dead' AND id < :before
    UNION ALL SELECT id FROM workmill_jobs INDEXED BY workmill_jobs_stopped
    WHERE :stopped AND (state = 'cancelled' OR state = 'expired' OR state = 'skipped') AND id < :before
    ORDER BY id DESC LIMIT :look
)
SELECT job.id,
    (:states IS NULL OR job.state IN (SELECT value FROM json_each(:states)))
    AND (job.queue = :queue OR :queue IS NULL AND substr(job.queue, 1, 9) <> 'workmill.')
    AND (:type IS NULL OR job.type = :type)
    AND (:tag IS NULL OR instr(job.tags, '"' || :tag || '"') > 0) -- a tag needs no escapes, and what is no JSON breaks nothing
    AND (:unique_key IS NULL OR job.unique_key = :unique_key)
    AND (:error_class IS NULL OR job.error_class = :error_class)
    AND (:worker_id IS NULL OR job.worker_id = :worker_id)
    AND (:trace_id IS NULL OR substr(job.traceparent, 4, 32) = :trace_id)
    AND (:created_after IS NULL OR job.created_at >= :created_after)
    AND (:created_before IS NULL OR job.created_at < :created_before)
FROM candidate CROSS JOIN workmill_jobs job ON job.id = candidate.id
