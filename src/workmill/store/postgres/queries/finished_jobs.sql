-- Jobs that ended, but not as dead, before `cutoff`.
SELECT id FROM workmill.jobs WHERE finished_at < :cutoff AND state <> 'dead' ORDER BY finished_at LIMIT :limit
