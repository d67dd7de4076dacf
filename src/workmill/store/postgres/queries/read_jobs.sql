-- Jobs for a list: without traceback, result and payload.
WITH given AS (SELECT * FROM :given (id text))
SELECT job.id, job.queue, job.type, job.state, job.priority, job.run_at, job.attempt, job.lease, job.losses, job.snoozes, job.suspect, job.aside,
       job.worker_id, job.claimed_at, job.started_at, job.finished_at, job.cancel_requested_at, job.expires_at, job.created_at, job.timeout,
       job.max_attempts, job.max_losses, job.backoff, job.unique_key, job.tags, job.meta, job.webhook, job.traceparent, job.workflow_id,
       job.node, job.waiting_on, job.progress, job.error_class, job.error,
       NULL, NULL, NULL
FROM given JOIN workmill.jobs job ON job.id = given.id
