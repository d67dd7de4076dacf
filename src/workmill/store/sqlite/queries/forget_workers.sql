-- Remove workers that have long been gone. Guard: they are.
WITH given (id) AS (VALUES :given)
DELETE FROM workmill_workers WHERE id IN (SELECT id FROM given) AND state = 'gone'
