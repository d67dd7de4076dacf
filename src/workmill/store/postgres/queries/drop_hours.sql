-- Forget the hours from before `cutoff`.
DELETE FROM workmill.stats WHERE period = 3600 AND start < :cutoff
