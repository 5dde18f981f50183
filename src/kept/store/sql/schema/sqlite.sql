-- The schema of a new SQLite database. An existing one reaches the same schema by sql/migrations/sqlite/.
-- A blank line ends a statement. Times are ISO 8601 text in UTC with microseconds, so that they sort as text.
-- Booleans are 0 or 1; ids of sources, documents, jobs and leases are UUIDs as text.

-- The migrations that made this schema. A new database has one row: the newest number.
CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TEXT NOT NULL
);

-- One site, folder, repository or package that is kept, under a name and a version label.
-- A removed source is hidden at once; garbage collection deletes its rows.
CREATE TABLE sources (
    id                  TEXT PRIMARY KEY,
    name                TEXT NOT NULL CHECK (name <> ''),
    version             TEXT NOT NULL DEFAULT '',
    kind                TEXT NOT NULL DEFAULT 'web' CHECK (kind IN ('web', 'folder', 'git', 'package')),
    root                TEXT NOT NULL,
    root_identity       TEXT,                              -- device and inode, or the marker, of a folder
    settings            TEXT NOT NULL,                     -- JSON
    owner               TEXT,                              -- the API key that added it; NULL: the command line
    authority           TEXT NOT NULL DEFAULT 'owner' CHECK (authority IN ('owner', 'caller')), -- who named it
    active_generation   INTEGER,                           -- the one that queries see
    next_generation     INTEGER NOT NULL DEFAULT 1,        -- only grows: a number is never used twice
    next_run_at         TEXT,                              -- of its schedule
    runs                INTEGER NOT NULL DEFAULT 0,        -- of its schedule: every n-th is a full crawl
    schedule_paused_at  TEXT,                              -- by a rollback, until the next requested refresh
    validators_wrong_at TEXT,                              -- a page had changed and its validators had not
    sitemap_wrong_at    TEXT,                              -- it called pages modified that were not
    created_at          TEXT NOT NULL,
    removed_at          TEXT,
    FOREIGN KEY (id, active_generation) REFERENCES generations (source_id, number) DEFERRABLE INITIALLY DEFERRED
) STRICT;

CREATE UNIQUE INDEX one_source_per_name ON sources (name, version) WHERE removed_at IS NULL;

CREATE UNIQUE INDEX one_source_per_root ON sources (root, version) WHERE removed_at IS NULL;

CREATE INDEX sources_by_next_run ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

-- A complete state of a source, numbered 1, 2, 3 … per source.
CREATE TABLE generations (
    source_id    TEXT NOT NULL REFERENCES sources (id),
    number       INTEGER NOT NULL CHECK (number > 0),
    base         INTEGER CHECK (base < number),            -- the generation that was active when it was begun
    state        TEXT NOT NULL CHECK (state IN ('building', 'held', 'active', 'retired', 'abandoned')),
    job_id       TEXT,                                     -- NULL for a rollback
    mode         TEXT CHECK (mode IN ('failed', 'quick', 'refresh', 'full')), -- of its crawl; NULL for a rollback
    settings     TEXT NOT NULL,                            -- JSON: the settings of the source at that time
    whole        INTEGER NOT NULL DEFAULT 0,               -- its crawl visited every known document
    changed      INTEGER NOT NULL DEFAULT 0,               -- it differs from its base
    cleared      INTEGER NOT NULL DEFAULT 0,               -- abandoned, and its rows are deleted
    documents    INTEGER NOT NULL DEFAULT 0,               -- how many it shows
    tally        TEXT NOT NULL DEFAULT '{}',               -- JSON: URLs by outcome
    partial      TEXT,                                     -- why it is not complete
    reason       TEXT,
    created_at   TEXT NOT NULL,
    activated_at TEXT,
    PRIMARY KEY (source_id, number)
) STRICT, WITHOUT ROWID;

-- Queries see one generation of a source, and at most one is being built or waits for a decision.
CREATE UNIQUE INDEX one_active_generation ON generations (source_id) WHERE state = 'active';

CREATE UNIQUE INDEX one_next_generation ON generations (source_id) WHERE state IN ('building', 'held');

-- A page or file of a source for its whole life; its id survives moves. Only exceptions (missing, in error, deleted)
-- carry times and counters of their own; an active document shares those of its generation.
CREATE TABLE documents (
    id               TEXT PRIMARY KEY,
    source_id        TEXT NOT NULL REFERENCES sources (id),
    first_seen       TEXT NOT NULL,
    first_generation INTEGER NOT NULL,
    lifecycle        TEXT NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'missing', 'error', 'deleted')),
    since            TEXT,                                 -- when it entered this state; NULL while active
    missed_crawls    INTEGER NOT NULL DEFAULT 0,
    retry_count      INTEGER NOT NULL DEFAULT 0,
    reason           TEXT,
    verified_at      TEXT,                                 -- NULL: as its generation
    former_id        TEXT,                                 -- the doc_id of the manifest it was imported from, if not its id
    CHECK ((lifecycle = 'active') = (since IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX documents_of_generation ON documents (source_id, first_generation);

CREATE INDEX documents_exceptional ON documents (source_id, lifecycle)
    WHERE lifecycle <> 'active' OR verified_at IS NOT NULL;

CREATE INDEX documents_by_former_id ON documents (former_id) WHERE former_id IS NOT NULL;

-- Title and Markdown behind one hash, stored once however many documents, versions and sources share it.
CREATE TABLE contents (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    hash     TEXT NOT NULL UNIQUE,
    title    TEXT NOT NULL,
    markdown BLOB NOT NULL,                                -- UTF-8, zstd
    size     INTEGER NOT NULL,                             -- of the Markdown, in characters
    kind     TEXT NOT NULL DEFAULT 'page'
             CHECK (kind IN ('page', 'index', 'contents', 'changelog', 'glossary', 'search', 'manual', 'stub')),
    places   BLOB NOT NULL DEFAULT x''                     -- ids and names in its text: JSON, zstd
) STRICT;

-- A document over a range of generations: visible where born <= generation < died.
CREATE TABLE versions (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id     TEXT NOT NULL REFERENCES sources (id),
    document_id   TEXT NOT NULL REFERENCES documents (id),
    born          INTEGER NOT NULL,
    died          INTEGER CHECK (died > born),             -- NULL while it lives on
    pending       INTEGER NOT NULL DEFAULT 0,              -- replaces a living version when its generation is activated
    read_again    INTEGER NOT NULL DEFAULT 0,              -- same bytes, another reader: not a change of the page
    url           TEXT NOT NULL,
    canonical     TEXT,                                    -- the URL that the page itself gives as its canonical one
    content_id    INTEGER NOT NULL REFERENCES contents (id),
    content_type  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT NOT NULL,
    signature     TEXT NOT NULL,                           -- of the reader and the settings that made the content
    depth         INTEGER NOT NULL,
    links         BLOB NOT NULL,                           -- one a line, zstd
    fetched_at    TEXT NOT NULL,
    end_reason    TEXT,                                    -- why the document was removed; NULL if another version follows
    UNIQUE (document_id, born)
) STRICT;

CREATE UNIQUE INDEX one_living_version ON versions (document_id) WHERE died IS NULL AND pending = 0;

CREATE UNIQUE INDEX one_living_document_per_url ON versions (source_id, url) WHERE died IS NULL AND pending = 0;

CREATE INDEX versions_by_born ON versions (source_id, born);

CREATE INDEX versions_by_died ON versions (source_id, died) WHERE died IS NOT NULL;

CREATE INDEX versions_by_content ON versions (content_id);

CREATE INDEX versions_by_url ON versions (source_id, url);

CREATE INDEX versions_with_canonical ON versions (source_id) WHERE canonical IS NOT NULL AND died IS NULL;

-- A node of a content's heading tree: what search finds. The client makes the id, content_id * 2^20 + position, which is
-- unique and increases, as FTS5 wants it.
CREATE TABLE sections (
    id                INTEGER PRIMARY KEY,
    content_id        INTEGER NOT NULL REFERENCES contents (id),
    parent_section_id INTEGER,
    position          INTEGER NOT NULL,
    level             INTEGER NOT NULL,
    heading           TEXT NOT NULL,
    headings          TEXT NOT NULL,                       -- the path from the top to this heading, one a line
    anchor            TEXT,
    text              TEXT NOT NULL,
    entry             TEXT NOT NULL DEFAULT '',            -- its name as written, if it is a named entry
    entries           TEXT NOT NULL DEFAULT '',            -- JSON: names and anchors of the entries in it
    CHECK (id = content_id * 1048576 + position),
    CHECK (parent_section_id < id)
) STRICT;

CREATE INDEX sections_of_content ON sections (content_id);

-- The full text of the sections, by rowid: defined names, headings, prose, code. It is written once a batch, in the
-- transaction of the batch, and deleted with its section.
CREATE VIRTUAL TABLE section_words USING fts5 (
    names, headings, text, code,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- FTS5 writes segments and merges them as they become many: sixteen at a time, not four, so that each word is written
-- again less often. A segment holds the words of a whole batch.
INSERT INTO section_words (section_words, rank) VALUES ('hashsize', 4194304);

INSERT INTO section_words (section_words, rank) VALUES ('automerge', 16);

INSERT INTO section_words (section_words, rank) VALUES ('crisismerge', 32);

CREATE TRIGGER section_deleted AFTER DELETE ON sections BEGIN
    DELETE FROM section_words WHERE rowid = old.id;
END;

-- Which contents an older version of Kept indexed: those above "done", up to "last". No row: none.
CREATE TABLE index_rebuild (
    done INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT;

-- A request to build the next generation of a source, from the queue to its end.
CREATE TABLE crawl_jobs (
    id                  TEXT PRIMARY KEY,
    source_id           TEXT NOT NULL REFERENCES sources (id),
    payload             TEXT NOT NULL DEFAULT '{}',        -- JSON
    mode                TEXT NOT NULL DEFAULT 'refresh' CHECK (mode IN ('failed', 'quick', 'refresh', 'full')),
    priority            INTEGER NOT NULL DEFAULT 0,
    status              TEXT NOT NULL DEFAULT 'pending'
                        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused')),
    again               TEXT CHECK (again IN ('failed', 'quick', 'refresh', 'full')), -- requested while it ran
    again_priority      INTEGER NOT NULL DEFAULT 0,
    again_user_id       TEXT,
    worker_id           TEXT,                              -- the last to claim it
    attempt             INTEGER NOT NULL DEFAULT 0,
    generation          INTEGER,
    listed              INTEGER NOT NULL DEFAULT 0,        -- its frontier has its first entries
    lists_everything    INTEGER NOT NULL DEFAULT 0,        -- what its origin does not list does not exist
    limited             INTEGER NOT NULL DEFAULT 0,        -- a limit kept something out
    unlisted            INTEGER NOT NULL DEFAULT 0,        -- a part of the list could not be read
    held                INTEGER NOT NULL DEFAULT 0,
    batch               INTEGER NOT NULL DEFAULT 0,        -- the number of the last one
    counted             INTEGER NOT NULL DEFAULT 0,        -- the last batch that the progress includes
    counted_at          TEXT,
    progress_percentage INTEGER NOT NULL DEFAULT 0,
    discovered          INTEGER NOT NULL DEFAULT 0,
    n_new               INTEGER NOT NULL DEFAULT 0,
    n_changed           INTEGER NOT NULL DEFAULT 0,
    n_unchanged         INTEGER NOT NULL DEFAULT 0,
    n_moved             INTEGER NOT NULL DEFAULT 0,
    n_gone              INTEGER NOT NULL DEFAULT 0,
    n_failed            INTEGER NOT NULL DEFAULT 0,
    n_skipped           INTEGER NOT NULL DEFAULT 0,
    n_dead_links        INTEGER NOT NULL DEFAULT 0,
    bytes               INTEGER NOT NULL DEFAULT 0,
    current_depth       INTEGER NOT NULL DEFAULT 0,
    created_at          TEXT NOT NULL,
    started_at          TEXT,
    claimed_at          TEXT,                              -- the last time
    done_before         INTEGER NOT NULL DEFAULT 0,        -- entries that were done when it was last claimed
    completed_at        TEXT,
    last_heartbeat      TEXT,
    retry_count         INTEGER NOT NULL DEFAULT 0,
    max_retries         INTEGER NOT NULL DEFAULT 3,
    due_at              TEXT,                              -- of a job that was interrupted; NULL: at once
    error_message       TEXT,
    user_id             TEXT
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX one_live_job ON crawl_jobs (source_id) WHERE status IN ('pending', 'processing', 'paused');

CREATE INDEX idx_crawl_jobs_status_priority ON crawl_jobs (status, priority DESC, created_at);

CREATE INDEX idx_crawl_jobs_worker_heartbeat ON crawl_jobs (worker_id, last_heartbeat);

CREATE INDEX crawl_jobs_of_source ON crawl_jobs (source_id, created_at);

CREATE INDEX crawl_jobs_by_end ON crawl_jobs (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX crawl_jobs_of_owner ON crawl_jobs (user_id) WHERE user_id IS NOT NULL;

-- A worker's lease of a job. The reaper deletes the row of a worker that is gone: the entries it held are free again,
-- and what it still tries to write is refused.
CREATE TABLE job_workers (
    id              TEXT PRIMARY KEY,
    job_id          TEXT NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    host            TEXT NOT NULL,                         -- machine and boot
    pid             INTEGER NOT NULL,
    process_started TEXT NOT NULL,
    attempt         INTEGER NOT NULL,
    beats           INTEGER NOT NULL DEFAULT 0,            -- heartbeats so far
    joined_at       TEXT NOT NULL,
    last_heartbeat  TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX job_workers_of_job ON job_workers (job_id);

-- How many requests at once each lease may have open at a host. A share goes with its lease, and expires unless renewed.
CREATE TABLE host_shares (
    host        TEXT NOT NULL,
    lease_id    TEXT NOT NULL REFERENCES job_workers (id) ON DELETE CASCADE,
    concurrency INTEGER NOT NULL,                          -- what its source allows for all leases together
    slots       INTEGER NOT NULL,                          -- what this lease may use
    joined_at   TEXT NOT NULL,
    renewed_at  TEXT NOT NULL,
    PRIMARY KEY (host, lease_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX host_shares_of_lease ON host_shares (lease_id);

-- The URLs of a job: open (no outcome, no worker), leased (no outcome, a worker) or done (an outcome). That of the last
-- full crawl of a source is kept as its ledger.
CREATE TABLE frontier (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id        TEXT NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    depth         INTEGER NOT NULL,
    parent_url    TEXT,
    reached       INTEGER NOT NULL,                        -- a link, a seed or a redirect leads to it
    version_id    INTEGER,                                 -- the version that the base shows at this URL
    document_id   TEXT,
    worker_id     TEXT REFERENCES job_workers (id) ON DELETE SET NULL,
    due_at        TEXT NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    outcome       TEXT CHECK (outcome IN ('new', 'changed', 'unchanged', 'moved', 'gone', 'failed', 'skipped', 'dead_link')),
    reason        TEXT,
    http_status   INTEGER,
    visited_at    TEXT,
    batch         INTEGER,
    by_settings   INTEGER NOT NULL DEFAULT 0,              -- the settings of the source exclude it
    redirect_to   TEXT,
    renews        INTEGER NOT NULL DEFAULT 0,              -- activation copies the columns below to the living version
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT,
    signature     TEXT,
    links         BLOB,
    canonical     TEXT,
    family        TEXT,                                    -- what its URL has in common with many others
    deferred      INTEGER NOT NULL DEFAULT 0,              -- waits until nothing else is open; then the guards decide
    round         INTEGER,                                 -- the round in which its family was admitted
    UNIQUE (job_id, url),
    CHECK (outcome IS NULL OR worker_id IS NULL)
) STRICT;

CREATE INDEX frontier_unfinished ON frontier (job_id, deferred, reached, due_at, id) WHERE outcome IS NULL;

CREATE INDEX frontier_leased ON frontier (worker_id) WHERE worker_id IS NOT NULL;

CREATE INDEX frontier_exceptions ON frontier (job_id) WHERE outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link');

CREATE INDEX frontier_by_family ON frontier (job_id, family) WHERE family IS NOT NULL;

CREATE INDEX frontier_unreached ON frontier (job_id) WHERE reached = 0;

CREATE INDEX frontier_renewed ON frontier (job_id) WHERE renews;

CREATE INDEX frontier_by_batch ON frontier (job_id, batch, id) WHERE batch IS NOT NULL;

-- The documents that the active generations show.
CREATE VIEW documents_active AS
SELECT d.id, d.source_id, s.name AS source_name, s.version AS source_version, s.active_generation AS generation,
       d.lifecycle, d.first_seen, d.verified_at, v.id AS version_id, v.born, v.url, v.content_id, v.content_type, v.fetched_at
  FROM sources s
  JOIN versions v ON v.source_id = s.id AND v.born <= s.active_generation
                 AND (v.died IS NULL OR v.died > s.active_generation)
  JOIN documents d ON d.id = v.document_id
 WHERE s.removed_at IS NULL;

-- Webhook deliveries that are still to be made, inserted in the transaction that they report. Deleted once delivered.
CREATE TABLE notifications (
    id         TEXT PRIMARY KEY,
    source_id  TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    receiver   TEXT NOT NULL CHECK (receiver IN ('operator', 'source')), -- whose webhook
    event      TEXT NOT NULL CHECK (event IN ('activated', 'held', 'failed')),
    payload    TEXT NOT NULL,                              -- JSON
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    due_at     TEXT,                                       -- NULL: given up
    error      TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX notifications_due ON notifications (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX notifications_of_source ON notifications (source_id);

-- Embedding models: at most one serves queries and one is wanted, that is, about to replace it.
CREATE TABLE models (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    dimensions INTEGER,                                    -- NULL: it has no vector yet
    state      TEXT NOT NULL CHECK (state IN ('wanted', 'serving', 'former')),
    created_at TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX one_model_serves ON models (state) WHERE state <> 'former';

-- The hash of the exact text that is embedded for a section.
CREATE TABLE section_texts (
    section_id INTEGER PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL
) STRICT;

CREATE INDEX section_texts_by_hash ON section_texts (hash);

-- The vector of a text by a model. Ids only grow, so that a reader who has read up to one needs only what follows.
CREATE TABLE vectors (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id INTEGER NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    vector   BLOB NOT NULL,                                -- a scale in four bytes, then a byte for each number
    UNIQUE (model_id, hash)
) STRICT;

-- Texts that a process is embedding, until then; and those that the model refused, with its error.
CREATE TABLE embedding_claims (
    model_id INTEGER NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    until    TEXT NOT NULL,
    error    TEXT,
    PRIMARY KEY (model_id, hash)
) STRICT, WITHOUT ROWID;

-- The embedding backlog: contents with sections that may have no vector of the wanted, or else the serving, model.
CREATE TABLE unembedded (
    content_id INTEGER PRIMARY KEY REFERENCES contents (id) ON DELETE CASCADE,
    due_at     TEXT NOT NULL DEFAULT ''                    -- empty: at once
) STRICT;

CREATE TRIGGER content_inserted AFTER INSERT ON contents BEGIN
    INSERT INTO unembedded (content_id) VALUES (new.id);
END;

-- API keys.
CREATE TABLE keys (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,                       -- SHA-256; the key itself is not stored
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Requests with an Idempotency-Key, and the job that each led to.
CREATE TABLE idempotency_keys (
    owner      TEXT NOT NULL,
    key        TEXT NOT NULL,
    request    TEXT NOT NULL,
    job_id     TEXT REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    created_at TEXT NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id);

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

-- Maintenance passes that one process makes for all: when each was last started.
CREATE TABLE maintenance_passes (
    name       TEXT PRIMARY KEY,
    started_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
