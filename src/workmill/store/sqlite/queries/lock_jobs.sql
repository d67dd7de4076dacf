-- What upkeep and operators decide on, by id.
WITH given (id) AS (VALUES :given)
SELECT job.id, job.queue, job.type, job.state, job.lease, job.run_at, job.expires_at, job.unique_key, job.aside, job.suspect,
       job.cancel_requested_at, job.priority
FROM given CROSS JOIN workmill_jobs job ON job.id = given.id
