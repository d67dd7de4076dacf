-- Jobs whose time has come.
SELECT id FROM workmill.jobs WHERE state IN ('scheduled', 'retrying') AND run_at <= :now ORDER BY run_at LIMIT :limit
