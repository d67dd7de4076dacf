-- Jobs aside since before `cutoff` whose type no worker has named that was there since then.
WITH RECURSIVE kind (type) AS (
    (SELECT type FROM workmill.jobs WHERE state = 'queued' AND aside = 'unknown_type' ORDER BY type LIMIT 1)
    UNION ALL
    SELECT (SELECT type FROM workmill.jobs WHERE state = 'queued' AND aside = 'unknown_type' AND type > kind.type ORDER BY type LIMIT 1)
    FROM kind WHERE kind.type IS NOT NULL
), known (type) AS (
    SELECT name.type FROM workmill.workers worker, json_array_elements_text(worker.types::json) AS name (type)
    WHERE worker.types IS NOT NULL AND (worker.state <> 'gone' OR worker.seen_at > :cutoff)
)
SELECT job.id
FROM kind JOIN workmill.jobs job ON job.type = kind.type AND job.aside_since <= :cutoff
WHERE job.state = 'queued' AND job.aside = 'unknown_type' AND NOT EXISTS (SELECT 1 FROM known WHERE known.type = kind.type)
LIMIT :limit
