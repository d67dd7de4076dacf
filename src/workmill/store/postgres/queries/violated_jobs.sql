-- What must be true of every job's row. Each line tells the rule; the job follows.
SELECT rule || ': ' || id
FROM (
    SELECT id, CASE
        WHEN attempt > max_attempts OR attempt < 0 THEN 'I5 attempt ' || attempt || ' of ' || max_attempts
        WHEN losses > max_losses OR losses < 0 THEN 'I5 losses ' || losses || ' of ' || max_losses
        WHEN (finished_at IS NOT NULL) <> (state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped')) THEN 'I6 ended or not: ' || state
        WHEN state = 'running' AND (worker_id IS NULL OR claimed_at IS NULL OR lease < 1) THEN 'I7 running without a worker, a claim or a lease'
        WHEN aside IS NOT NULL AND (state <> 'queued' OR aside_since IS NULL) THEN 'I7 aside but ' || state
        WHEN state = 'queued' AND suspect AND aside IS NULL THEN 'I7 a suspect in front of the others'
        WHEN state = 'dead' AND error_class IS NULL THEN 'I7 dead without a reason'
        WHEN cancel_requested_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'retrying') THEN 'I15 waiting, though its cancellation was answered'
    END AS rule
    FROM workmill.jobs
) AS judged
WHERE rule IS NOT NULL
LIMIT :limit
