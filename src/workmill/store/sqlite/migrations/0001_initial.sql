-- Jobs, their history, workers, queues, maintained counts and stats, audit. Times are microseconds since the epoch.

CREATE TABLE workmill_jobs (
    id TEXT PRIMARY KEY NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    lease INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    suspect INTEGER NOT NULL DEFAULT 0,
    aside TEXT,
    aside_since INTEGER,
    worker_id TEXT,
    claimed_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    cancel_requested_at INTEGER,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    timeout REAL,
    max_attempts INTEGER NOT NULL,
    max_losses INTEGER NOT NULL,
    backoff TEXT,
    unique_key TEXT,
    tags TEXT,
    meta TEXT,
    webhook TEXT,
    traceparent TEXT,
    workflow_id TEXT,
    node TEXT,
    waiting_on INTEGER NOT NULL DEFAULT 0,
    omitted INTEGER NOT NULL DEFAULT 0,
    progress TEXT,
    error_class TEXT,
    error TEXT,
    result TEXT,
    payload TEXT NOT NULL,
    -- Written as cases, the usual ones first: an IN over many values builds a table for each row that is written.
    CHECK (CASE state
        WHEN 'running' THEN finished_at IS NULL WHEN 'succeeded' THEN finished_at IS NOT NULL WHEN 'queued' THEN finished_at IS NULL
        WHEN 'scheduled' THEN finished_at IS NULL WHEN 'retrying' THEN finished_at IS NULL WHEN 'blocked' THEN finished_at IS NULL
        WHEN 'dead' THEN finished_at IS NOT NULL WHEN 'cancelled' THEN finished_at IS NOT NULL WHEN 'expired' THEN finished_at IS NOT NULL
        WHEN 'skipped' THEN finished_at IS NOT NULL ELSE 0 END),
    CHECK (CASE WHEN aside IS NULL THEN 1 ELSE aside = 'suspect' OR aside = 'unknown_type' END)
);

-- No index condition says IN over more than two values before anything else: it would be built anew for each row that is written (2 µs).
CREATE INDEX workmill_jobs_claim ON workmill_jobs (queue, priority DESC, run_at, id) WHERE state = 'queued' AND aside IS NULL;
-- What is set aside, by whom it is for: '' for suspects, else the unknown type.
CREATE INDEX workmill_jobs_aside ON workmill_jobs
    (queue, (CASE aside WHEN 'unknown_type' THEN type ELSE '' END), priority DESC, run_at, id) WHERE state = 'queued' AND aside IS NOT NULL;
CREATE INDEX workmill_jobs_due ON workmill_jobs (run_at, id) WHERE state IN ('scheduled', 'retrying');
CREATE INDEX workmill_jobs_expiring ON workmill_jobs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'retrying');
-- Running rows by worker, and, over all workers, by queue.
CREATE INDEX workmill_jobs_running ON workmill_jobs (worker_id, queue) WHERE state = 'running';
CREATE UNIQUE INDEX workmill_jobs_unique ON workmill_jobs (type, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying');
CREATE INDEX workmill_jobs_finished ON workmill_jobs (finished_at) WHERE finished_at IS NOT NULL AND state <> 'dead';
CREATE INDEX workmill_jobs_died ON workmill_jobs (finished_at) WHERE state = 'dead';
CREATE INDEX workmill_jobs_dead ON workmill_jobs (error_class, id) WHERE state = 'dead';
CREATE INDEX workmill_jobs_stopped ON workmill_jobs (id) WHERE state = 'cancelled' OR state = 'expired' OR state = 'skipped';
CREATE INDEX workmill_jobs_unknown ON workmill_jobs (type, aside_since) WHERE state = 'queued' AND aside = 'unknown_type';

CREATE TABLE workmill_attempts (
    job_id TEXT NOT NULL,
    lease INTEGER NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    worker_id TEXT,
    started_at INTEGER,
    ended_at INTEGER NOT NULL,
    error_class TEXT,
    message TEXT,
    traceback TEXT,
    next_run_at INTEGER,
    PRIMARY KEY (job_id, lease)
) WITHOUT ROWID;

CREATE TABLE workmill_workers (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'draining', 'gone')),
    queues TEXT NOT NULL,
    types TEXT,
    concurrency INTEGER NOT NULL,
    concurrency_wanted INTEGER,
    lease INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    seq INTEGER NOT NULL DEFAULT 0,
    joined_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workmill_queues (
    name TEXT PRIMARY KEY NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    concurrency_limit INTEGER
) WITHOUT ROWID;

CREATE INDEX workmill_queues_restricted ON workmill_queues (name) WHERE paused <> 0 OR concurrency_limit IS NOT NULL;

CREATE TABLE workmill_counts (
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) WITHOUT ROWID;

CREATE TABLE workmill_count_deltas (
    seq INTEGER PRIMARY KEY,
    queue TEXT NOT NULL,
    state TEXT NOT NULL,
    jobs INTEGER NOT NULL
);

CREATE TABLE workmill_stats (
    period INTEGER NOT NULL CHECK (period IN (60, 3600)),
    start INTEGER NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    wait TEXT NOT NULL,
    wait_max INTEGER NOT NULL,
    run TEXT NOT NULL,
    run_max INTEGER NOT NULL,
    PRIMARY KEY (period, start, queue, type)
) WITHOUT ROWID;

CREATE TABLE workmill_stat_deltas (
    seq INTEGER PRIMARY KEY,
    start INTEGER NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    wait TEXT NOT NULL,
    wait_max INTEGER NOT NULL,
    run TEXT NOT NULL,
    run_max INTEGER NOT NULL
);

CREATE TABLE workmill_upkeep (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    observed INTEGER NOT NULL,
    turned_at INTEGER NOT NULL
);
INSERT INTO workmill_upkeep VALUES (1, 0, 0);

CREATE TABLE workmill_audit (
    id TEXT PRIMARY KEY NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    detail TEXT NOT NULL
) WITHOUT ROWID;
