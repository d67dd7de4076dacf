-- A worker has left. Guard: not gone already.
UPDATE workmill_workers SET state = 'gone', seen_at = :now WHERE id = :worker AND state <> 'gone'
