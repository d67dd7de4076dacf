-- Jobs, their history, workers, queues, maintained counts and stats, audit. Times are microseconds since the epoch.
-- Names and ids compare by their bytes, as they do in SQLite and in Python. JSON is kept as the text that came in.

CREATE TABLE workmill.jobs (
    id text COLLATE "C" PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    priority integer NOT NULL,
    run_at bigint NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    lease bigint NOT NULL DEFAULT 0,
    losses integer NOT NULL DEFAULT 0,
    snoozes integer NOT NULL DEFAULT 0,
    suspect boolean NOT NULL DEFAULT false,
    aside text COLLATE "C",
    aside_since bigint,
    worker_id text COLLATE "C",
    claimed_at bigint,
    started_at bigint,
    finished_at bigint,
    cancel_requested_at bigint,
    expires_at bigint,
    created_at bigint NOT NULL,
    timeout double precision,
    max_attempts integer NOT NULL,
    max_losses integer NOT NULL,
    backoff text,
    unique_key text COLLATE "C",
    tags text,
    meta text,
    webhook text,
    traceparent text,
    workflow_id text COLLATE "C",
    node text COLLATE "C",
    waiting_on integer NOT NULL DEFAULT 0,
    omitted integer NOT NULL DEFAULT 0,
    progress text,
    error_class text COLLATE "C",
    error text,
    result text,
    payload text NOT NULL,
    CHECK (state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying') AND finished_at IS NULL
        OR state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped') AND finished_at IS NOT NULL),
    CHECK (aside IN ('suspect', 'unknown_type'))
);

CREATE INDEX jobs_claim ON workmill.jobs (queue, priority DESC, run_at, id) WHERE state = 'queued' AND aside IS NULL;
-- What is set aside, by whom it is for: '' for suspects, else the unknown type.
CREATE INDEX jobs_aside ON workmill.jobs
    (queue, (CASE aside WHEN 'unknown_type' THEN type ELSE '' END), priority DESC, run_at, id) WHERE state = 'queued' AND aside IS NOT NULL;
CREATE INDEX jobs_due ON workmill.jobs (run_at, id) WHERE state IN ('scheduled', 'retrying');
CREATE INDEX jobs_expiring ON workmill.jobs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'retrying');
-- Running rows by worker, and, over all workers, by queue.
CREATE INDEX jobs_running ON workmill.jobs (worker_id, queue) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_unique ON workmill.jobs (type, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying');
CREATE INDEX jobs_finished ON workmill.jobs (finished_at) WHERE finished_at IS NOT NULL AND state <> 'dead';
CREATE INDEX jobs_died ON workmill.jobs (finished_at) WHERE state = 'dead';
CREATE INDEX jobs_dead ON workmill.jobs (error_class, id) WHERE state = 'dead';
CREATE INDEX jobs_stopped ON workmill.jobs (id) WHERE state = 'cancelled' OR state = 'expired' OR state = 'skipped';
CREATE INDEX jobs_unknown ON workmill.jobs (type, aside_since) WHERE state = 'queued' AND aside = 'unknown_type';

CREATE TABLE workmill.attempts (
    job_id text COLLATE "C" NOT NULL,
    lease bigint NOT NULL,
    number integer NOT NULL,
    kind text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C",
    started_at bigint,
    ended_at bigint NOT NULL,
    error_class text COLLATE "C",
    message text,
    traceback text,
    next_run_at bigint,
    PRIMARY KEY (job_id, lease)
);

CREATE TABLE workmill.workers (
    id text COLLATE "C" PRIMARY KEY,
    name text COLLATE "C" NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('running', 'draining', 'gone')),
    queues text NOT NULL,
    types text,
    concurrency integer NOT NULL,
    concurrency_wanted integer,
    lease bigint NOT NULL,
    lease_until bigint NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    joined_at bigint NOT NULL,
    seen_at bigint NOT NULL
);

CREATE TABLE workmill.queues (
    name text COLLATE "C" PRIMARY KEY,
    paused integer NOT NULL DEFAULT 0,
    concurrency_limit integer
);

CREATE INDEX queues_restricted ON workmill.queues (name) WHERE paused <> 0 OR concurrency_limit IS NOT NULL;

CREATE TABLE workmill.counts (
    queue text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    jobs bigint NOT NULL,
    PRIMARY KEY (queue, state)
);

CREATE TABLE workmill.count_deltas (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    jobs bigint NOT NULL
);

CREATE TABLE workmill.stats (
    period integer NOT NULL CHECK (period IN (60, 3600)),
    start bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    wait text NOT NULL,
    wait_max bigint NOT NULL,
    run text NOT NULL,
    run_max bigint NOT NULL,
    PRIMARY KEY (period, start, queue, type)
);

CREATE TABLE workmill.stat_deltas (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    start bigint NOT NULL,
    queue text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    dead bigint NOT NULL,
    wait text NOT NULL,
    wait_max bigint NOT NULL,
    run text NOT NULL,
    run_max bigint NOT NULL
);

CREATE TABLE workmill.upkeep (
    id integer PRIMARY KEY CHECK (id = 1),
    observed bigint NOT NULL,
    turned_at bigint NOT NULL
);
INSERT INTO workmill.upkeep VALUES (1, 0, 0);

CREATE TABLE workmill.audit (
    id text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    jobs bigint NOT NULL,
    detail text NOT NULL
);

-- Rows come and go quickly: many are dead within a second, and the indexes of what waits are small and hot.
ALTER TABLE workmill.jobs SET (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000
);
ALTER TABLE workmill.count_deltas SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
ALTER TABLE workmill.stat_deltas SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0
);
-- One row each, written every few seconds: room for its next version on the same page.
ALTER TABLE workmill.workers SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE workmill.upkeep SET (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
