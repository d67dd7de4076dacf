-- Workers whose lease has ended by the observed clock.
SELECT id FROM workmill.workers WHERE state <> 'gone' AND lease_until < (SELECT observed FROM workmill.upkeep) LIMIT :limit
