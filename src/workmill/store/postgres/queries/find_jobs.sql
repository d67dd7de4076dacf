-- The next candidates below a cursor, the newest ones, and whether each matches a selection. The first arm is every job, each other one an index
-- of some states; Python opens what is shortest for the states asked for.
WITH candidate (id) AS (
    SELECT id FROM workmill.jobs WHERE :everywhere AND id < :before
    UNION ALL SELECT id FROM workmill.jobs
    WHERE :queued AND state = 'queued' AND aside IS NULL AND queue >= :first_queue AND queue <= :last_queue AND id < :before
    UNION ALL SELECT id FROM workmill.jobs
    WHERE :queued AND state = 'queued' AND aside IS NOT NULL AND queue >= :first_queue AND queue <= :last_queue AND id < :before
    UNION ALL SELECT id FROM workmill.jobs
    WHERE :waiting AND state IN ('scheduled', 'retrying') AND id < :before
    UNION ALL SELECT id FROM workmill.jobs WHERE :running AND state = 'running' AND id < :before
    UNION ALL SELECT id FROM workmill.jobs
    WHERE :dead AND :error_class::text IS NULL AND state = 'dead' AND id < :before
    UNION ALL SELECT id FROM workmill.jobs
    WHERE :dead AND error_class = :error_class AND state = 'dead' AND id < :before
    UNION ALL SELECT id FROM workmill.jobs
    WHERE :stopped AND (state = 'cancelled' OR state = 'expired' OR state = 'skipped') AND id < :before
    ORDER BY id DESC LIMIT :look
)
SELECT job.id,
    (:states::text IS NULL OR job.state IN (SELECT json_array_elements_text(:states::json)))
    AND (job.queue = :queue::text OR :queue::text IS NULL AND substr(job.queue, 1, 9) <> 'workmill.')
    AND (:type::text IS NULL OR job.type = :type)
    AND (:tag::text IS NULL OR coalesce(strpos(job.tags, '"' || :tag::text || '"') > 0, false)) -- a tag needs no escapes
    AND (:unique_key::text IS NULL OR coalesce(job.unique_key = :unique_key, false))
    AND (:error_class::text IS NULL OR coalesce(job.error_class = :error_class, false))
    AND (:worker_id::text IS NULL OR coalesce(job.worker_id = :worker_id, false))
    AND (:trace_id::text IS NULL OR coalesce(substr(job.traceparent, 4, 32) = :trace_id, false))
    AND (:created_after::bigint IS NULL OR job.created_at >= :created_after)
    AND (:created_before::bigint IS NULL OR job.created_at < :created_before)
FROM candidate JOIN workmill.jobs job ON job.id = candidate.id
