-- Jobs by id, for receipts.
WITH given (id) AS (VALUES :given)
SELECT job.id, job.state, job.queue, job.type FROM given CROSS JOIN workmill_jobs job ON job.id = given.id
