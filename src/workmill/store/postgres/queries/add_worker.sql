-- Register a worker; its lease runs from now on the observed clock. Guard: its id is new.
INSERT INTO workmill.workers (id, name, host, pid, version, state, queues, types, concurrency, lease, lease_until, joined_at, seen_at)
SELECT :worker, :name, :host, :pid, :version, 'running', :queues, :types, :concurrency, :lease,
       observed + least(greatest(:now - turned_at, 0), :most) + :lease, :now, :now
FROM workmill.upkeep
