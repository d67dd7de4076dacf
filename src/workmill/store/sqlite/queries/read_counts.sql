-- Jobs by queue and state: what is maintained, and what is not folded yet.
SELECT queue, state, sum(jobs)
FROM (SELECT queue, state, jobs FROM workmill_counts UNION ALL SELECT queue, state, jobs FROM workmill_count_deltas)
GROUP BY queue, state
