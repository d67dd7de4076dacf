-- Add to the maintained counts.
INSERT INTO workmill.counts AS held (queue, state, jobs)
SELECT * FROM :given (queue text, state text, jobs bigint)
ON CONFLICT (queue, state) DO UPDATE SET jobs = held.jobs + excluded.jobs
