-- Queue jobs whose time has come; suspects go aside. Guard: they still wait for their time.
WITH given AS (SELECT * FROM :given (id text))
UPDATE workmill.jobs AS job
SET state = 'queued', aside = CASE WHEN job.suspect THEN 'suspect' END, aside_since = CASE WHEN job.suspect THEN :now::bigint END
FROM given
WHERE job.id = given.id AND CASE WHEN job.state IN ('scheduled', 'retrying') THEN true ELSE false END
