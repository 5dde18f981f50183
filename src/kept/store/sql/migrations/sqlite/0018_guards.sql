-- Guards defer entries; a link to what never was there is a dead link. SQLite changes a CHECK only with its table.

ALTER TABLE crawl_jobs ADD COLUMN n_dead_links INTEGER NOT NULL DEFAULT 0;

ALTER TABLE frontier RENAME TO former_frontier;

CREATE TABLE frontier (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id        TEXT NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    depth         INTEGER NOT NULL,
    parent_url    TEXT,
    reached       INTEGER NOT NULL,
    version_id    INTEGER,
    document_id   TEXT,
    worker_id     TEXT REFERENCES job_workers (id) ON DELETE SET NULL,
    due_at        TEXT NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    outcome       TEXT CHECK (outcome IN ('new', 'changed', 'unchanged', 'moved', 'gone', 'failed', 'skipped', 'dead_link')),
    reason        TEXT,
    http_status   INTEGER,
    visited_at    TEXT,
    batch         INTEGER,
    by_settings   INTEGER NOT NULL DEFAULT 0,
    redirect_to   TEXT,
    renews        INTEGER NOT NULL DEFAULT 0,
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT,
    signature     TEXT,
    links         BLOB,
    canonical     TEXT,
    family        TEXT,
    deferred      INTEGER NOT NULL DEFAULT 0,
    round         INTEGER,
    UNIQUE (job_id, url),
    CHECK (outcome IS NULL OR worker_id IS NULL)
) STRICT;

INSERT INTO frontier (id, job_id, url, depth, parent_url, reached, version_id, document_id, worker_id, due_at, attempts, outcome,
                      reason, http_status, visited_at, batch, by_settings, redirect_to, renews, etag, last_modified, raw_hash,
                      signature, links, canonical)
SELECT id, job_id, url, depth, parent_url, reached, version_id, document_id, worker_id, due_at, attempts, outcome,
       reason, http_status, visited_at, batch, by_settings, redirect_to, renews, etag, last_modified, raw_hash,
       signature, links, canonical
  FROM former_frontier;

DROP TABLE former_frontier;

CREATE INDEX frontier_unfinished ON frontier (job_id, deferred, reached, due_at, id) WHERE outcome IS NULL;

CREATE INDEX frontier_leased ON frontier (worker_id) WHERE worker_id IS NOT NULL;

CREATE INDEX frontier_exceptions ON frontier (job_id) WHERE outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link');

CREATE INDEX frontier_by_family ON frontier (job_id, family) WHERE family IS NOT NULL;

CREATE INDEX frontier_unreached ON frontier (job_id) WHERE reached = 0;

CREATE INDEX frontier_renewed ON frontier (job_id) WHERE renews;

CREATE INDEX frontier_by_url ON frontier (url);

CREATE INDEX frontier_by_batch ON frontier (job_id, batch, id) WHERE batch IS NOT NULL;
