-- The whole job.
SELECT job.id, job.queue, job.type, job.state, job.priority, job.run_at, job.attempt, job.lease, job.losses, job.snoozes, job.suspect, job.aside,
       job.worker_id, job.claimed_at, job.started_at, job.finished_at, job.cancel_requested_at, job.expires_at, job.created_at, job.timeout,
       job.max_attempts, job.max_losses, job.backoff, job.unique_key, job.tags, job.meta, job.webhook, job.traceparent, job.workflow_id,
       job.node, job.waiting_on, job.progress, job.error_class, job.error,
       (SELECT traceback FROM workmill.attempts WHERE job_id = job.id AND error_class = job.error_class ORDER BY lease DESC LIMIT 1),
       job.result, job.payload
FROM workmill.jobs job
WHERE job.id = :id
