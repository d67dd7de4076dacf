-- Store how far runs have come. Guard: id, lease and worker, and still running. What others hold is passed over: it comes again.
WITH given AS (SELECT * FROM :given (id text, lease bigint, progress text)), locked AS MATERIALIZED (
    SELECT job.id, given.progress FROM given JOIN workmill.jobs job ON job.id = given.id
    WHERE CASE WHEN job.lease = given.lease AND job.worker_id = :worker AND job.state = 'running' THEN true ELSE false END
    FOR NO KEY UPDATE OF job SKIP LOCKED
)
UPDATE workmill.jobs AS job SET progress = locked.progress FROM locked WHERE job.id = locked.id
