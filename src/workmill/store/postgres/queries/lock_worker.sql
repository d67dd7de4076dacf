-- Hold a worker that is not gone, so that nobody ends it beside what is written for it; its beats go on.
SELECT state, types, lease, concurrency_wanted FROM workmill.workers WHERE id = :worker AND state <> 'gone' FOR KEY SHARE
