-- Renew a worker's lease on the observed clock. Guard: not gone, and the list is newer than the last one.
UPDATE workmill.workers
SET lease_until = (SELECT observed + least(greatest(:now - turned_at, 0), :most) FROM workmill.upkeep) + lease, seq = :seq, seen_at = :now
WHERE id = :worker AND state <> 'gone' AND seq < :seq
