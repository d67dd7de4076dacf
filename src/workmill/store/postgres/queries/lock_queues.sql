-- Hold limited queues, so that their running jobs are counted and claimed by one at a time; in the order of their names.
WITH given AS (SELECT * FROM :given (queue text))
SELECT name FROM workmill.queues WHERE name IN (SELECT queue FROM given) ORDER BY name FOR NO KEY UPDATE
