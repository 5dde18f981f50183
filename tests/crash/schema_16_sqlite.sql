-- The schema numbered 16, as a SQLite database has it. Tests upgrade it.

CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);

CREATE TABLE sources (
    id                TEXT PRIMARY KEY,
    name              TEXT NOT NULL CHECK (name <> ''),
    version           TEXT NOT NULL DEFAULT '',
    root              TEXT NOT NULL,
    settings          TEXT NOT NULL,                        -- JSON
    active_generation INTEGER,                              -- what queries see
    next_generation   INTEGER NOT NULL DEFAULT 1,           -- never goes back: a number is never used twice
    created_at        TEXT NOT NULL,
    removed_at        TEXT, schedule_paused_at TEXT, next_run_at TEXT, runs INTEGER NOT NULL DEFAULT 0, validators_wrong_at TEXT, kind TEXT NOT NULL DEFAULT 'web' CHECK (kind IN ('web', 'folder', 'git', 'package')), sitemap_wrong_at TEXT, root_identity TEXT, owner TEXT,                                 -- hidden; garbage collection takes the rows
    FOREIGN KEY (id, active_generation) REFERENCES generations (source_id, number) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE UNIQUE INDEX one_source_per_name ON sources (name, version) WHERE removed_at IS NULL;

CREATE UNIQUE INDEX one_source_per_root ON sources (root, version) WHERE removed_at IS NULL;

CREATE TABLE generations (
    source_id    TEXT NOT NULL REFERENCES sources (id),
    number       INTEGER NOT NULL CHECK (number > 0),
    base         INTEGER CHECK (base < number),
    state        TEXT NOT NULL CHECK (state IN ('building', 'held', 'active', 'retired', 'abandoned')),
    job_id       TEXT,                                      -- none for a rollback
    settings     TEXT NOT NULL,                             -- the source's settings it was made with
    whole        INTEGER NOT NULL DEFAULT 0,                -- its crawl visited every known document
    changed      INTEGER NOT NULL DEFAULT 0,                -- it differs from its base
    cleared      INTEGER NOT NULL DEFAULT 0,                -- abandoned, and its rows are gone
    documents    INTEGER NOT NULL DEFAULT 0,
    tally        TEXT NOT NULL DEFAULT '{}',                -- JSON
    partial      TEXT,
    reason       TEXT,
    created_at   TEXT NOT NULL,
    activated_at TEXT, mode TEXT CHECK (mode IN ('failed', 'quick', 'refresh', 'full')),
    PRIMARY KEY (source_id, number)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_active_generation ON generations (source_id) WHERE state = 'active';

CREATE UNIQUE INDEX one_next_generation ON generations (source_id) WHERE state IN ('building', 'held');

CREATE TABLE documents (
    id               TEXT PRIMARY KEY,
    source_id        TEXT NOT NULL REFERENCES sources (id),
    first_seen       TEXT NOT NULL,
    first_generation INTEGER NOT NULL,
    lifecycle        TEXT NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'missing', 'error', 'deleted')),
    since            TEXT,                                  -- in this state; an active document has none
    missed_crawls    INTEGER NOT NULL DEFAULT 0,
    retry_count      INTEGER NOT NULL DEFAULT 0,
    reason           TEXT,
    verified_at      TEXT,                                  -- its own; none: shared with its generation
    CHECK ((lifecycle = 'active') = (since IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX documents_of_generation ON documents (source_id, first_generation);

CREATE INDEX documents_exceptional ON documents (source_id, lifecycle)
    WHERE lifecycle <> 'active' OR verified_at IS NOT NULL;

CREATE TABLE contents (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    hash     TEXT NOT NULL UNIQUE,
    title    TEXT NOT NULL,
    markdown BLOB NOT NULL,                                 -- UTF-8, zstd
    size     INTEGER NOT NULL                               -- of the markdown, in characters
) STRICT;

CREATE TABLE versions (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id     TEXT NOT NULL REFERENCES sources (id),
    document_id   TEXT NOT NULL REFERENCES documents (id),
    born          INTEGER NOT NULL,
    died          INTEGER CHECK (died > born),
    pending       INTEGER NOT NULL DEFAULT 0,               -- will replace a living version when its generation is activated
    read_again    INTEGER NOT NULL DEFAULT 0,               -- same bytes, another reader: not a change of the page
    url           TEXT NOT NULL,
    content_id    INTEGER NOT NULL REFERENCES contents (id),
    content_type  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT NOT NULL,
    signature     TEXT NOT NULL,
    depth         INTEGER NOT NULL,
    links         BLOB NOT NULL,                            -- one a line, zstd
    fetched_at    TEXT NOT NULL, canonical TEXT,
    UNIQUE (document_id, born)
) STRICT;

CREATE UNIQUE INDEX one_living_version ON versions (document_id) WHERE died IS NULL AND pending = 0;

CREATE UNIQUE INDEX one_living_document_per_url ON versions (source_id, url) WHERE died IS NULL AND pending = 0;

CREATE INDEX versions_by_born ON versions (source_id, born);

CREATE INDEX versions_by_died ON versions (source_id, died) WHERE died IS NOT NULL;

CREATE INDEX versions_by_content ON versions (content_id);

CREATE INDEX versions_by_url ON versions (url);

CREATE TABLE sections (
    id                INTEGER PRIMARY KEY,
    content_id        INTEGER NOT NULL REFERENCES contents (id),
    parent_section_id INTEGER,
    position          INTEGER NOT NULL,
    level             INTEGER NOT NULL,
    heading           TEXT NOT NULL,
    headings          TEXT NOT NULL,                        -- the path from the top to this heading, one a line
    anchor            TEXT,
    text              TEXT NOT NULL,
    CHECK (id = content_id * 1048576 + position),
    CHECK (parent_section_id < id)
) STRICT;

CREATE INDEX sections_of_content ON sections (content_id);

CREATE TABLE crawl_jobs (
    id                  TEXT PRIMARY KEY,
    source_id           TEXT NOT NULL REFERENCES sources (id),
    payload             TEXT NOT NULL DEFAULT '{}',         -- JSON: what the request brought
    priority            INTEGER NOT NULL DEFAULT 0,
    status              TEXT NOT NULL DEFAULT 'pending'
                        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused')),
    worker_id           TEXT,                               -- the last to claim it
    attempt             INTEGER NOT NULL DEFAULT 0,
    generation          INTEGER,
    listed              INTEGER NOT NULL DEFAULT 0,
    lists_everything    INTEGER NOT NULL DEFAULT 0,         -- what its origin does not list is not there
    limited             INTEGER NOT NULL DEFAULT 0,         -- a limit kept something out
    unlisted            INTEGER NOT NULL DEFAULT 0,         -- a part of the list could not be read
    held                INTEGER NOT NULL DEFAULT 0,
    batch               INTEGER NOT NULL DEFAULT 0,
    progress_percentage INTEGER NOT NULL DEFAULT 0,
    discovered          INTEGER NOT NULL DEFAULT 0,
    n_new               INTEGER NOT NULL DEFAULT 0,
    n_changed           INTEGER NOT NULL DEFAULT 0,
    n_unchanged         INTEGER NOT NULL DEFAULT 0,
    n_moved             INTEGER NOT NULL DEFAULT 0,
    n_gone              INTEGER NOT NULL DEFAULT 0,
    n_failed            INTEGER NOT NULL DEFAULT 0,
    n_skipped           INTEGER NOT NULL DEFAULT 0,
    bytes               INTEGER NOT NULL DEFAULT 0,
    current_depth       INTEGER NOT NULL DEFAULT 0,
    created_at          TEXT NOT NULL,
    started_at          TEXT,
    completed_at        TEXT,
    last_heartbeat      TEXT,
    retry_count         INTEGER NOT NULL DEFAULT 0,
    max_retries         INTEGER NOT NULL DEFAULT 3,
    error_message       TEXT,
    user_id             TEXT
, claimed_at TEXT, done_before INTEGER NOT NULL DEFAULT 0, mode TEXT NOT NULL DEFAULT 'refresh' CHECK (mode IN ('failed', 'quick', 'refresh', 'full')), again TEXT CHECK (again IN ('failed', 'quick', 'refresh', 'full')), counted INTEGER NOT NULL DEFAULT 0, counted_at TEXT) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_live_job ON crawl_jobs (source_id) WHERE status IN ('pending', 'processing', 'paused');

CREATE INDEX idx_crawl_jobs_status_priority ON crawl_jobs (status, priority DESC, created_at);

CREATE INDEX idx_crawl_jobs_worker_heartbeat ON crawl_jobs (worker_id, last_heartbeat);

CREATE INDEX crawl_jobs_of_source ON crawl_jobs (source_id, created_at);

CREATE TABLE job_workers (
    id              TEXT PRIMARY KEY,
    job_id          TEXT NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    host            TEXT NOT NULL,                          -- machine and boot
    pid             INTEGER NOT NULL,
    process_started TEXT NOT NULL,
    attempt         INTEGER NOT NULL,
    beats           INTEGER NOT NULL DEFAULT 0,
    joined_at       TEXT NOT NULL,
    last_heartbeat  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX job_workers_of_job ON job_workers (job_id);

CREATE TABLE frontier (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id        TEXT NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    depth         INTEGER NOT NULL,
    parent_url    TEXT,
    reached       INTEGER NOT NULL,
    version_id    INTEGER,                                  -- what the base shows at this URL
    document_id   TEXT,
    worker_id     TEXT REFERENCES job_workers (id) ON DELETE SET NULL,
    due_at        TEXT NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    outcome       TEXT CHECK (outcome IN ('new', 'changed', 'unchanged', 'moved', 'gone', 'failed', 'skipped')),
    reason        TEXT,
    http_status   INTEGER,
    visited_at    TEXT,
    batch         INTEGER,
    by_settings   INTEGER NOT NULL DEFAULT 0,
    redirect_to   TEXT,
    renews        INTEGER NOT NULL DEFAULT 0,               -- what follows is carried over to the living version by activation
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT,
    signature     TEXT,
    links         BLOB, canonical TEXT,
    UNIQUE (job_id, url),
    CHECK (outcome IS NULL OR worker_id IS NULL)
) STRICT;

CREATE INDEX frontier_unfinished ON frontier (job_id, reached, due_at, id) WHERE outcome IS NULL;

CREATE INDEX frontier_leased ON frontier (worker_id) WHERE worker_id IS NOT NULL;

CREATE INDEX frontier_exceptions ON frontier (job_id) WHERE outcome IN ('moved', 'gone', 'failed', 'skipped');

CREATE INDEX frontier_unreached ON frontier (job_id) WHERE reached = 0;

CREATE INDEX frontier_by_url ON frontier (url);

CREATE VIEW documents_active AS
SELECT d.id, d.source_id, s.name AS source_name, s.version AS source_version, s.active_generation AS generation,
       d.lifecycle, d.first_seen, d.verified_at, v.id AS version_id, v.born, v.url, v.content_id, v.content_type, v.fetched_at
  FROM sources s
  JOIN versions v ON v.source_id = s.id AND v.born <= s.active_generation
                 AND (v.died IS NULL OR v.died > s.active_generation)
  JOIN documents d ON d.id = v.document_id
 WHERE s.removed_at IS NULL;

CREATE INDEX versions_with_canonical ON versions (source_id) WHERE canonical IS NOT NULL AND died IS NULL;

CREATE INDEX frontier_renewed ON frontier (job_id) WHERE renews;

CREATE TABLE host_shares (
    host       TEXT NOT NULL,
    place_id   TEXT NOT NULL REFERENCES job_workers (id) ON DELETE CASCADE,
    at_once    INTEGER NOT NULL,                           -- what its source would have for all of them together
    slots      INTEGER NOT NULL,                           -- what it may use
    joined_at  TEXT NOT NULL,
    renewed_at TEXT NOT NULL,
    PRIMARY KEY (host, place_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX host_shares_of_place ON host_shares (place_id);

CREATE INDEX sources_by_next_run ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE TABLE notices (
    id         TEXT PRIMARY KEY,
    source_id  TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    receiver   TEXT NOT NULL CHECK (receiver IN ('operator', 'source')), -- whose webhook
    event      TEXT NOT NULL CHECK (event IN ('activated', 'held', 'failed')),
    payload    TEXT NOT NULL,                               -- JSON
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    due_at     TEXT,                                        -- none: given up
    error      TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX notices_due ON notices (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX notices_of_source ON notices (source_id);

CREATE TABLE models (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    dimensions INTEGER,                                     -- none: it has no vector yet
    state      TEXT NOT NULL CHECK (state IN ('wanted', 'serving', 'former')),
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX one_model_serves ON models (state) WHERE state <> 'former';

CREATE TABLE section_texts (
    section_id INTEGER PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL
) STRICT;

CREATE INDEX section_texts_by_hash ON section_texts (hash);

CREATE TABLE vectors (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id INTEGER NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    vector   BLOB NOT NULL,                                 -- a scale in four bytes, then a byte for each number
    UNIQUE (model_id, hash)
) STRICT;

CREATE TABLE texts_taken (
    model_id INTEGER NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    until    TEXT NOT NULL,
    error    TEXT,
    PRIMARY KEY (model_id, hash)
) STRICT, WITHOUT ROWID;

CREATE TABLE unembedded (
    content_id INTEGER PRIMARY KEY REFERENCES contents (id) ON DELETE CASCADE,
    due_at     TEXT NOT NULL DEFAULT ''                     -- empty: at once
) STRICT;

CREATE TRIGGER content_inserted AFTER INSERT ON contents BEGIN
    INSERT INTO unembedded (content_id) VALUES (new.id);
END;

CREATE TABLE keys (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,                        -- SHA-256; the key itself is nowhere
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE INDEX frontier_by_batch ON frontier (job_id, batch, id) WHERE batch IS NOT NULL;

CREATE INDEX crawl_jobs_by_end ON crawl_jobs (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX crawl_jobs_of_owner ON crawl_jobs (user_id) WHERE user_id IS NOT NULL;

CREATE VIRTUAL TABLE section_words USING fts5 (
    names, headings, text, code,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

CREATE TRIGGER section_deleted AFTER DELETE ON sections BEGIN
    DELETE FROM section_words WHERE rowid = old.id;
END;

CREATE TABLE passes (
    name     TEXT PRIMARY KEY,
    begun_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO section_words (section_words, rank) VALUES ('automerge', 16);

INSERT INTO section_words (section_words, rank) VALUES ('crisismerge', 32);

INSERT INTO section_words (section_words, rank) VALUES ('hashsize', 4194304);

INSERT INTO migrations (number, name, applied_at) VALUES
    (1, 'foundation', '2026-11-17T00:00:00.000000+00:00'),
    (2, 'paused_schedules', '2026-11-17T00:00:00.000000+00:00'),
    (3, 'canonical_urls', '2026-11-17T00:00:00.000000+00:00'),
    (4, 'workers', '2026-11-17T00:00:00.000000+00:00'),
    (5, 'schedules', '2026-11-17T00:00:00.000000+00:00'),
    (6, 'packages', '2026-11-17T00:00:00.000000+00:00'),
    (7, 'vectors', '2026-11-17T00:00:00.000000+00:00'),
    (8, 'sitemaps', '2026-11-17T00:00:00.000000+00:00'),
    (9, 'root_identity', '2026-11-17T00:00:00.000000+00:00'),
    (10, 'doors', '2026-11-17T00:00:00.000000+00:00'),
    (11, 'names_and_code', '2026-11-17T00:00:00.000000+00:00'),
    (12, 'word_statistics', '2026-11-17T00:00:00.000000+00:00'),
    (13, 'counted', '2026-11-17T00:00:00.000000+00:00'),
    (14, 'no_run_after', '2026-11-17T00:00:00.000000+00:00'),
    (15, 'passes', '2026-11-17T00:00:00.000000+00:00'),
    (16, 'cheaper_batches', '2026-11-17T00:00:00.000000+00:00');
