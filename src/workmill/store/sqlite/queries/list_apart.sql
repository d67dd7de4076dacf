-- What is set aside under a key in queues ('' for suspects, else an unknown type), in order. Reads as `list_claimable` does.
WITH given (queue, key) AS (VALUES :given)
SELECT job.queue, -job.priority, job.run_at, job.id
FROM given CROSS JOIN workmill_jobs job ON job.rowid IN (
    SELECT number FROM (
        SELECT next.rowid AS number, next.expires_at FROM workmill_jobs next
        WHERE next.queue = given.queue AND (CASE next.aside WHEN 'unknown_type' THEN next.type ELSE '' END) = given.key
          AND next.state = 'queued' AND next.aside IS NOT NULL
        ORDER BY next.priority DESC, next.run_at, next.id LIMIT :room + 1000
    ) WHERE expires_at IS NULL OR expires_at > :now LIMIT :room)
