-- Append what a transaction changed in the counts by queue and state. No guard: deltas are only added, and folded by upkeep.
INSERT INTO workmill.count_deltas (queue, state, jobs)
SELECT * FROM :given (queue text, state text, jobs bigint)
