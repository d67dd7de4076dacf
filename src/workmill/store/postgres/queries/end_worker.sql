-- A worker has left. Guard: not gone already; an exchange of its own that is open is waited for.
WITH locked AS MATERIALIZED (SELECT id FROM workmill.workers WHERE id = :worker AND state <> 'gone' FOR UPDATE)
UPDATE workmill.workers AS worker SET state = 'gone', seen_at = :now FROM locked WHERE worker.id = locked.id
