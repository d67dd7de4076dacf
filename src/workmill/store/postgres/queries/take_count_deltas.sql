-- Take the oldest deltas of the counts, to fold them.
DELETE FROM workmill.count_deltas
WHERE seq IN (SELECT seq FROM workmill.count_deltas ORDER BY seq LIMIT :limit)
RETURNING queue, state, jobs
