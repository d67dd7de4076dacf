-- Jobs by id, for receipts.
WITH given AS (SELECT * FROM :given (id text))
SELECT job.id, job.state, job.queue, job.type FROM given JOIN workmill.jobs job ON job.id = given.id
