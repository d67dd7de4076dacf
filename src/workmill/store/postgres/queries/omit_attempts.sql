-- Count the attempts that were dropped. Guard: the lease that made them too many.
UPDATE workmill.jobs AS job SET omitted = omitted + :dropped WHERE id = :id AND lease = :lease
