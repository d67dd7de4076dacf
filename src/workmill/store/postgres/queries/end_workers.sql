-- End workers whose lease has ended. Guard: by the observed clock, so that a beat in between keeps one; nor while one exchanges.
WITH given AS (SELECT * FROM :given (id text)), locked AS MATERIALIZED (
    SELECT worker.id FROM given JOIN workmill.workers worker ON worker.id = given.id
    WHERE worker.state <> 'gone' AND worker.lease_until < (SELECT observed FROM workmill.upkeep)
    ORDER BY worker.id FOR UPDATE OF worker SKIP LOCKED
)
UPDATE workmill.workers AS worker SET state = 'gone' FROM locked WHERE worker.id = locked.id
