-- Hold limited queues, so that their running jobs are counted and claimed by one at a time: in a write transaction they are.
WITH given (queue) AS (VALUES :given)
SELECT name FROM workmill_queues WHERE name IN (SELECT queue FROM given) ORDER BY name
