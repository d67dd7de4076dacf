-- The latest lines of the audit, newest first.
SELECT id, at, actor, action, target, jobs, detail FROM workmill.audit ORDER BY id DESC LIMIT :limit
