-- Jobs, their history, workers, queues, maintained counts and stats, audit. Times are microseconds since the epoch.

CREATE TABLE workmill_jobs (
    id TEXT PRIMARY KEY NOT NULL,
    queue TEXT NOT NULL,
    type TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying', 'succeeded', 'dead', 'cancelled',
                                         'expired', 'skipped')),
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0,
    lease INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    suspect INTEGER NOT NULL DEFAULT 0,
    aside TEXT CHECK (aside IN ('suspect', 'unknown_type')),
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
    CHECK ((finished_at IS NOT NULL) = (state IN ('succeeded', 'dead', 'cancelled', 'expired', 'skipped')))
);

CREATE INDEX workmill_jobs_claim ON workmill_jobs (queue, priority DESC, run_at, id) WHERE state = 'queued' AND aside IS NULL;
CREATE INDEX workmill_jobs_aside ON workmill_jobs (queue, priority DESC, run_at, id) WHERE state = 'queued' AND aside IS NOT NULL;
CREATE INDEX workmill_jobs_due ON workmill_jobs (run_at) WHERE state IN ('scheduled', 'retrying');
CREATE INDEX workmill_jobs_expiring ON workmill_jobs (expires_at)
    WHERE expires_at IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'retrying');
CREATE INDEX workmill_jobs_running ON workmill_jobs (worker_id) WHERE state = 'running';
CREATE INDEX workmill_jobs_occupying ON workmill_jobs (queue) WHERE state = 'running';
CREATE UNIQUE INDEX workmill_jobs_unique ON workmill_jobs (type, unique_key)
    WHERE unique_key IS NOT NULL AND state IN ('blocked', 'scheduled', 'queued', 'running', 'retrying');
CREATE INDEX workmill_jobs_finished ON workmill_jobs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX workmill_jobs_dead ON workmill_jobs (error_class, id) WHERE state = 'dead';

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
