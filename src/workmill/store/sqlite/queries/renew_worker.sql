-- Renew a worker's lease on the observed clock. Guard: not gone, and the list is newer than the last one.
UPDATE workmill_workers
SET lease_until = (SELECT observed + min(max(:now - turned_at, 0), :most) FROM workmill_upkeep) + lease, seq = :seq, seen_at = :now
WHERE id = :worker AND state <> 'gone' AND seq < :seq
