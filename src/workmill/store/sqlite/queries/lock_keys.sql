-- Take unique keys for this transaction and return those taken: all, since one transaction writes at a time.
WITH given (type, unique_key) AS (VALUES :given)
SELECT type, unique_key FROM given WHERE :waiting IS NOT NULL
