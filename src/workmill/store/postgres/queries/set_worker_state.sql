-- Drain a worker, or undo it. Guard: it is live.
UPDATE workmill.workers SET state = :state WHERE id = :id AND state <> 'gone'
