-- Take unique keys for this transaction and return those taken: all, if need be after a wait, or those that no other open one has.
-- The number of a table of this schema is the seed, so that two stores in one database have nothing to do with each other.
WITH given AS (SELECT * FROM :given (type text, unique_key text)), named AS (
    SELECT type, unique_key, hashtextextended(type || ' ' || unique_key, (SELECT tableoid::bigint FROM workmill.upkeep)) AS number FROM given
)
SELECT type, unique_key FROM named
WHERE CASE WHEN :waiting THEN pg_advisory_xact_lock(number) IS NOT NULL ELSE pg_try_advisory_xact_lock(number) END
