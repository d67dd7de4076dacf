-- Jobs aside since before `cutoff` whose type no worker has named that was there since then.
WITH RECURSIVE kind (type) AS (
    SELECT (SELECT type FROM workmill_jobs WHERE state = 'queued' AND aside = 'unknown_type' ORDER BY type LIMIT 1)
    UNION ALL
    SELECT (SELECT type FROM workmill_jobs WHERE state = 'queued' AND aside = 'unknown_type' AND type > kind.type ORDER BY type LIMIT 1)
    FROM kind WHERE kind.type IS NOT NULL
), known (type) AS (
    SELECT name.value FROM workmill_workers worker, json_each(worker.types) name
    WHERE worker.types IS NOT NULL AND (worker.state <> 'gone' OR worker.seen_at > :cutoff)
)
SELECT job.id
FROM kind CROSS JOIN workmill_jobs job INDEXED BY workmill_jobs_unknown ON job.type = kind.type AND job.aside_since <= :cutoff
WHERE job.state = 'queued' AND job.aside = 'unknown_type' AND kind.type NOT IN (SELECT type FROM known)
LIMIT :limit
