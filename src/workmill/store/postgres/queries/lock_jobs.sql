-- What upkeep and operators decide on, by id. What others hold is passed over: whoever asks comes again.
WITH given AS (SELECT * FROM :given (id text))
SELECT job.id, job.queue, job.type, job.state, job.lease, job.run_at, job.expires_at, job.unique_key, job.aside, job.suspect,
       job.cancel_requested_at, job.priority
FROM given JOIN workmill.jobs job ON job.id = given.id
FOR UPDATE OF job SKIP LOCKED
