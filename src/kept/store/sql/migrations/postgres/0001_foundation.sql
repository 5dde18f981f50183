-- The model: what is kept (sources), its complete states (generations), its pages (documents) and what they
-- were (versions, contents, sections), and the crawls that build it (jobs, their workers, the frontier).

CREATE TABLE sources (
    id                UUID PRIMARY KEY,
    name              TEXT NOT NULL CHECK (name <> ''),
    version           TEXT NOT NULL DEFAULT '',
    kind              TEXT NOT NULL CHECK (kind IN ('web', 'folder', 'git')),
    root              TEXT NOT NULL,
    settings          JSONB NOT NULL,                        -- JSON
    active_generation BIGINT,                              -- what queries see
    next_generation   BIGINT NOT NULL DEFAULT 1,           -- never goes back: a number is never used twice
    created_at        TIMESTAMPTZ NOT NULL,
    removed_at        TIMESTAMPTZ                          -- hidden; garbage collection takes the rows
);

CREATE UNIQUE INDEX one_source_per_name ON sources (name, version) WHERE removed_at IS NULL;

CREATE UNIQUE INDEX one_source_per_root ON sources (root, version) WHERE removed_at IS NULL;

CREATE TABLE generations (
    source_id    UUID NOT NULL REFERENCES sources (id),
    number       BIGINT NOT NULL CHECK (number > 0),
    base         BIGINT CHECK (base < number),
    state        TEXT NOT NULL CHECK (state IN ('building', 'held', 'active', 'retired', 'abandoned')),
    job_id       UUID,                                      -- none for a rollback
    settings     JSONB NOT NULL,                             -- the source's settings it was made with
    whole        BOOLEAN NOT NULL DEFAULT FALSE,                -- its crawl visited every known document
    changed      BOOLEAN NOT NULL DEFAULT FALSE,                -- it differs from its base
    cleared      BOOLEAN NOT NULL DEFAULT FALSE,                -- abandoned, and its rows are gone
    documents    BIGINT NOT NULL DEFAULT 0,
    tally        JSONB NOT NULL DEFAULT '{}',                -- JSON
    partial      TEXT,
    reason       TEXT,
    created_at   TIMESTAMPTZ NOT NULL,
    activated_at TIMESTAMPTZ,
    PRIMARY KEY (source_id, number)
);

ALTER TABLE sources ADD FOREIGN KEY (id, active_generation) REFERENCES generations (source_id, number)
    DEFERRABLE INITIALLY DEFERRED;

-- What queries see is one; what is being built or waits for a person is one. No process can get around these.
CREATE UNIQUE INDEX one_active_generation ON generations (source_id) WHERE state = 'active';

CREATE UNIQUE INDEX one_next_generation ON generations (source_id) WHERE state IN ('building', 'held');

CREATE TABLE documents (
    id               UUID PRIMARY KEY,
    source_id        UUID NOT NULL REFERENCES sources (id),
    first_seen       TIMESTAMPTZ NOT NULL,
    first_generation BIGINT NOT NULL,
    lifecycle        TEXT NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'missing', 'error', 'deleted')),
    since            TIMESTAMPTZ,                                  -- in this state; an active document has none
    missed_crawls    BIGINT NOT NULL DEFAULT 0,
    retry_count      BIGINT NOT NULL DEFAULT 0,
    reason           TEXT,
    verified_at      TIMESTAMPTZ,                                  -- its own; none: shared with its generation
    CHECK ((lifecycle = 'active') = (since IS NULL))
);

CREATE INDEX documents_of_generation ON documents (source_id, first_generation);

CREATE INDEX documents_exceptional ON documents (source_id, lifecycle)
    WHERE lifecycle <> 'active' OR verified_at IS NOT NULL;

CREATE TABLE contents (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash     TEXT NOT NULL UNIQUE,
    title    TEXT NOT NULL,
    markdown BYTEA NOT NULL,                                 -- UTF-8, zstd
    size     BIGINT NOT NULL                               -- of the markdown, in characters
);

CREATE TABLE versions (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id     UUID NOT NULL REFERENCES sources (id),
    document_id   UUID NOT NULL REFERENCES documents (id),
    born          BIGINT NOT NULL,
    died          BIGINT CHECK (died > born),
    pending       BOOLEAN NOT NULL DEFAULT FALSE,               -- will replace a living version when its generation is activated
    read_again    BOOLEAN NOT NULL DEFAULT FALSE,               -- same bytes, another reader: not a change of the page
    url           TEXT NOT NULL,
    content_id    BIGINT NOT NULL REFERENCES contents (id),
    content_type  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT NOT NULL,
    signature     TEXT NOT NULL,
    depth         BIGINT NOT NULL,
    links         BYTEA NOT NULL,                            -- one a line, zstd
    fetched_at    TIMESTAMPTZ NOT NULL,
    UNIQUE (document_id, born)
);

CREATE UNIQUE INDEX one_living_version ON versions (document_id) WHERE died IS NULL AND NOT pending;

CREATE UNIQUE INDEX one_living_document_per_url ON versions (source_id, url) WHERE died IS NULL AND NOT pending;

CREATE INDEX versions_by_born ON versions (source_id, born);

CREATE INDEX versions_by_died ON versions (source_id, died) WHERE died IS NOT NULL;

CREATE INDEX versions_by_content ON versions (content_id);

CREATE INDEX versions_by_url ON versions (url);

-- An id is content_id * 2^20 + position: made by the client, unique, and increasing.
CREATE TABLE sections (
    id                BIGINT PRIMARY KEY,
    content_id        BIGINT NOT NULL REFERENCES contents (id),
    parent_section_id BIGINT,
    position          BIGINT NOT NULL,
    level             BIGINT NOT NULL,
    heading           TEXT NOT NULL,
    headings          TEXT NOT NULL,                        -- the path from the top to this heading, one a line
    anchor            TEXT,
    text              TEXT NOT NULL,
    words             TSVECTOR NOT NULL,                    -- title, headings and text, weighted
    CHECK (id = content_id * 1048576 + position),
    CHECK (parent_section_id < id)
);

CREATE INDEX sections_of_content ON sections (content_id);

CREATE INDEX sections_by_words ON sections USING gin (words);

CREATE TABLE crawl_jobs (
    id                  UUID PRIMARY KEY,
    source_id           UUID NOT NULL REFERENCES sources (id),
    payload             JSONB NOT NULL DEFAULT '{}',         -- JSON: what the request brought
    mode                TEXT NOT NULL CHECK (mode IN ('failed', 'refresh', 'full')),
    priority            BIGINT NOT NULL DEFAULT 0,
    status              TEXT NOT NULL DEFAULT 'pending'
                        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused')),
    again               TEXT CHECK (again IN ('failed', 'refresh', 'full')), -- asked for while it ran
    worker_id           UUID,                               -- the last to claim it
    attempt             BIGINT NOT NULL DEFAULT 0,
    generation          BIGINT,
    listed              BOOLEAN NOT NULL DEFAULT FALSE,
    lists_everything    BOOLEAN NOT NULL DEFAULT FALSE,         -- what its origin does not list is not there
    limited             BOOLEAN NOT NULL DEFAULT FALSE,         -- a limit kept something out
    unlisted            BOOLEAN NOT NULL DEFAULT FALSE,         -- a part of the list could not be read
    held                BOOLEAN NOT NULL DEFAULT FALSE,
    batch               BIGINT NOT NULL DEFAULT 0,
    progress_percentage BIGINT NOT NULL DEFAULT 0,
    discovered          BIGINT NOT NULL DEFAULT 0,
    n_new               BIGINT NOT NULL DEFAULT 0,
    n_changed           BIGINT NOT NULL DEFAULT 0,
    n_unchanged         BIGINT NOT NULL DEFAULT 0,
    n_moved             BIGINT NOT NULL DEFAULT 0,
    n_gone              BIGINT NOT NULL DEFAULT 0,
    n_failed            BIGINT NOT NULL DEFAULT 0,
    n_skipped           BIGINT NOT NULL DEFAULT 0,
    bytes               BIGINT NOT NULL DEFAULT 0,
    current_depth       BIGINT NOT NULL DEFAULT 0,
    created_at          TIMESTAMPTZ NOT NULL,
    run_after           TIMESTAMPTZ NOT NULL,
    started_at          TIMESTAMPTZ,
    completed_at        TIMESTAMPTZ,
    last_heartbeat      TIMESTAMPTZ,
    retry_count         BIGINT NOT NULL DEFAULT 0,
    max_retries         BIGINT NOT NULL DEFAULT 3,
    error_message       TEXT,
    user_id             TEXT
);

CREATE UNIQUE INDEX one_live_job ON crawl_jobs (source_id) WHERE status IN ('pending', 'processing', 'paused');

CREATE INDEX idx_crawl_jobs_status_priority ON crawl_jobs (status, priority DESC, created_at);

CREATE INDEX idx_crawl_jobs_worker_heartbeat ON crawl_jobs (worker_id, last_heartbeat);

CREATE INDEX crawl_jobs_of_source ON crawl_jobs (source_id, created_at);

-- A worker's place in a job. A reaped worker's row is gone, its leases lapse with it, and its writes are refused.
CREATE TABLE job_workers (
    id              UUID PRIMARY KEY,
    job_id          UUID NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    host            TEXT NOT NULL,                          -- machine and boot
    pid             BIGINT NOT NULL,
    process_started TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    beats           BIGINT NOT NULL DEFAULT 0,
    joined_at       TIMESTAMPTZ NOT NULL,
    last_heartbeat  TIMESTAMPTZ NOT NULL
);

CREATE INDEX job_workers_of_job ON job_workers (job_id);

-- Open: no outcome, no worker. Leased: no outcome, a worker. Done: an outcome.
CREATE TABLE frontier (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id        UUID NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    depth         BIGINT NOT NULL,
    parent_url    TEXT,
    reached       BOOLEAN NOT NULL,
    version_id    BIGINT,                                  -- what the base shows at this URL
    document_id   UUID,
    worker_id     UUID REFERENCES job_workers (id) ON DELETE SET NULL,
    due_at        TIMESTAMPTZ NOT NULL,
    attempts      BIGINT NOT NULL DEFAULT 0,
    outcome       TEXT CHECK (outcome IN ('new', 'changed', 'unchanged', 'moved', 'gone', 'failed', 'skipped')),
    reason        TEXT,
    http_status   BIGINT,
    visited_at    TIMESTAMPTZ,
    batch         BIGINT,
    by_settings   BOOLEAN NOT NULL DEFAULT FALSE,
    redirect_to   TEXT,
    renews        BOOLEAN NOT NULL DEFAULT FALSE,               -- what follows is carried over to the living version by activation
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT,
    signature     TEXT,
    links         BYTEA,
    UNIQUE (job_id, url),
    CHECK (outcome IS NULL OR worker_id IS NULL)
);

CREATE INDEX frontier_unfinished ON frontier (job_id, reached, due_at, id) WHERE outcome IS NULL;

CREATE INDEX frontier_leased ON frontier (worker_id) WHERE worker_id IS NOT NULL;

CREATE INDEX frontier_exceptions ON frontier (job_id) WHERE outcome IN ('moved', 'gone', 'failed', 'skipped');

CREATE INDEX frontier_unreached ON frontier (job_id) WHERE NOT reached;

CREATE INDEX frontier_renewed ON frontier (job_id) WHERE renews;

CREATE INDEX frontier_by_url ON frontier (url);

CREATE VIEW documents_active AS
SELECT d.id, d.source_id, s.name AS source_name, s.version AS source_version, s.active_generation AS generation,
       d.lifecycle, d.first_seen, d.verified_at, v.id AS version_id, v.born, v.url, v.content_id, v.content_type, v.fetched_at
  FROM sources s
  JOIN versions v ON v.source_id = s.id AND v.born <= s.active_generation
                 AND (v.died IS NULL OR v.died > s.active_generation)
  JOIN documents d ON d.id = v.document_id
 WHERE s.removed_at IS NULL;

-- The same name is a function of ours on SQLite.
CREATE FUNCTION ago(seconds DOUBLE PRECISION) RETURNS TIMESTAMPTZ STABLE RETURN now() - make_interval(secs => seconds);
