-- Remove workers that have long been gone. Guard: they are.
WITH given AS (SELECT * FROM :given (id text))
DELETE FROM workmill.workers WHERE id IN (SELECT id FROM given) AND state = 'gone'
