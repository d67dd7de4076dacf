-- End workers whose lease has ended. Guard: by the observed clock, so that a beat in between keeps one.
WITH given (id) AS (VALUES :given)
UPDATE workmill_workers
SET state = 'gone'
WHERE id IN (SELECT id FROM given) AND state <> 'gone' AND lease_until < (SELECT observed FROM workmill_upkeep)
