-- Whether there is anything to fold, roll up or drop.
SELECT EXISTS (SELECT 1 FROM workmill.count_deltas) OR EXISTS (SELECT 1 FROM workmill.stat_deltas)
    OR EXISTS (SELECT 1 FROM workmill.stats WHERE period = 60 AND start < :minutes_before)
    OR EXISTS (SELECT 1 FROM workmill.stats WHERE period = 3600 AND start < :hours_before)
