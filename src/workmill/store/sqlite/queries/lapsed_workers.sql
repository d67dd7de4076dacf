-- Workers whose lease has ended by the observed clock.
SELECT id FROM workmill_workers WHERE state <> 'gone' AND lease_until < (SELECT observed FROM workmill_upkeep) LIMIT :limit
