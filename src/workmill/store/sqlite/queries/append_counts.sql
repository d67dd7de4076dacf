-- Append what a transaction changed in the counts by queue and state. No guard: deltas are only added, and folded by upkeep.
INSERT INTO workmill_count_deltas (queue, state, jobs) VALUES :given
