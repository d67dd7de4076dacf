-- Drain a worker, or undo it. Guard: it is live.
UPDATE workmill_workers SET state = :state WHERE id = :id AND state <> 'gone'
