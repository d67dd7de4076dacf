-- I16: the maintained counts are the counted rows.
SELECT 'I16 the count of ' || queue || '/' || state || ' is maintained as ' || sum(maintained) || ' but counted as ' || sum(counted)
FROM (
    SELECT queue, state, jobs AS maintained, 0 AS counted FROM workmill_counts
    UNION ALL SELECT queue, state, jobs, 0 FROM workmill_count_deltas
    UNION ALL SELECT queue, state, 0, count(*) FROM workmill_jobs GROUP BY queue, state
)
GROUP BY queue, state
HAVING sum(maintained) <> sum(counted)
