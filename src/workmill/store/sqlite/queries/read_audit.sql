-- The latest lines of the audit, newest first.
SELECT id, at, actor, action, target, jobs, detail FROM workmill_audit ORDER BY id DESC LIMIT :limit
