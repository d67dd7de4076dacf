-- Drop the oldest attempts of a job beyond those kept. Guard: the newest stay.
DELETE FROM workmill.attempts
WHERE job_id = :id
  AND lease <= (SELECT lease FROM workmill.attempts WHERE job_id = :id ORDER BY lease DESC LIMIT 1 OFFSET :keep)
