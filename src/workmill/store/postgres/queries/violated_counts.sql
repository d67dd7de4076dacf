-- I16: the maintained counts are the counted rows.
SELECT 'I16 the count of ' || queue || '/' || state || ' is maintained as ' || sum(maintained) || ' but counted as ' || sum(counted)
FROM (
    SELECT queue, state, jobs AS maintained, 0 AS counted FROM workmill.counts
    UNION ALL SELECT queue, state, jobs, 0 FROM workmill.count_deltas
    UNION ALL SELECT queue, state, 0, count(*) FROM workmill.jobs GROUP BY queue, state
) AS either
GROUP BY queue, state
HAVING sum(maintained) <> sum(counted)
