-- What this database is.
SELECT 'kind', 'sqlite'
UNION ALL SELECT 'version', sqlite_version()
UNION ALL SELECT 'path', file FROM pragma_database_list WHERE name = 'main'
UNION ALL SELECT 'journal_mode', journal_mode FROM pragma_journal_mode
UNION ALL SELECT 'synchronous', CASE synchronous WHEN 0 THEN 'off' WHEN 1 THEN 'normal' WHEN 2 THEN 'full' ELSE 'extra' END FROM pragma_synchronous
UNION ALL SELECT 'page_size', page_size FROM pragma_page_size
UNION ALL SELECT 'bytes', page_size * page_count FROM pragma_page_size, pragma_page_count
UNION ALL SELECT 'schema_version', max(version) FROM workmill_migrations
-- Seconds since upkeep last turned; nothing before its first turn.
UNION ALL SELECT 'upkeep_age', (:now - turned_at) / 1000000.0 FROM workmill_upkeep WHERE turned_at > 0
