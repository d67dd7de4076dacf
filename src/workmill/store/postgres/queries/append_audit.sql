-- Record who did what.
INSERT INTO workmill.audit (id, at, actor, action, target, jobs, detail) VALUES (:id, :now, :actor, :action, :target, :jobs, :detail)
