-- Forget the hours from before `cutoff`.
DELETE FROM workmill_stats WHERE period = 3600 AND start < :cutoff
