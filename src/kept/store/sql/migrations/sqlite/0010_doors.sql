-- The doors of the server: who may ask, what was asked once already, and what has happened since a batch.

CREATE TABLE keys (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,                        -- SHA-256; the key itself is nowhere
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The job that a request with an Idempotency-Key came to.
CREATE TABLE asked_once (
    owner    TEXT NOT NULL,
    key      TEXT NOT NULL,
    request  TEXT NOT NULL,
    job_id   TEXT REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    asked_at TEXT NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX asked_once_by_job ON asked_once (job_id);

CREATE INDEX asked_once_by_time ON asked_once (asked_at);

ALTER TABLE sources ADD COLUMN owner TEXT; -- the key that added it; none: a person at the command line

CREATE INDEX frontier_by_batch ON frontier (job_id, batch, id) WHERE batch IS NOT NULL;

CREATE INDEX crawl_jobs_by_end ON crawl_jobs (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX crawl_jobs_of_owner ON crawl_jobs (user_id) WHERE user_id IS NOT NULL;
