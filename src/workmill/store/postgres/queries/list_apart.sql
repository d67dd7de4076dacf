-- What is set aside under a key in queues ('' for suspects, else an unknown type), in order. Reads as `list_claimable` does.
WITH given AS (SELECT * FROM :given (queue text, key text))
SELECT job.queue, -job.priority, job.run_at, job.id
FROM given CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT next.queue, next.priority, next.run_at, next.id, next.expires_at FROM workmill.jobs next
        WHERE next.queue = given.queue AND (CASE next.aside WHEN 'unknown_type' THEN next.type ELSE '' END) = given.key
          AND next.state = 'queued' AND next.aside IS NOT NULL
        ORDER BY next.priority DESC, next.run_at, next.id LIMIT :room::bigint + 1000
    ) AS head
    WHERE expires_at IS NULL OR expires_at > :now ORDER BY priority DESC, run_at, id LIMIT :room::bigint
) AS job
