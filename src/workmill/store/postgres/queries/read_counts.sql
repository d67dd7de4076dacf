-- Jobs by queue and state: what is maintained, and what is not folded yet.
SELECT queue, state, sum(jobs)::bigint
FROM (SELECT queue, state, jobs FROM workmill.counts UNION ALL SELECT queue, state, jobs FROM workmill.count_deltas) AS held
GROUP BY queue, state
