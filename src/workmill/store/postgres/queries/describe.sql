-- What this database is.
SELECT 'kind', to_jsonb('postgresql'::text)
UNION ALL SELECT 'version', to_jsonb(current_setting('server_version'))
UNION ALL SELECT 'database', to_jsonb(current_database()::text)
UNION ALL SELECT 'fsync', to_jsonb(current_setting('fsync'))
UNION ALL SELECT 'synchronous_commit', to_jsonb(current_setting('synchronous_commit'))
UNION ALL SELECT 'bytes', to_jsonb(sum(pg_total_relation_size(class.oid))::bigint)
    FROM pg_class class
    WHERE class.relkind = 'r' AND class.relnamespace = (
        SELECT relnamespace FROM workmill.upkeep turn JOIN pg_class held ON held.oid = turn.tableoid
    )
UNION ALL SELECT 'schema_version', to_jsonb(max(version)) FROM workmill.migrations
-- Seconds since upkeep last turned; nothing before its first turn.
UNION ALL SELECT 'upkeep_age', to_jsonb((:now - turned_at)::float8 / 1000000) FROM workmill.upkeep WHERE turned_at > 0
