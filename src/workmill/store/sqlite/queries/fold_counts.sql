-- Add to the maintained counts.
INSERT INTO workmill_counts (queue, state, jobs) SELECT * FROM (VALUES :given) WHERE true
ON CONFLICT (queue, state) DO UPDATE SET jobs = workmill_counts.jobs + excluded.jobs
