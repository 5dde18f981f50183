-- The schema of a new PostgreSQL database. An existing one reaches the same schema by sql/migrations/postgres/.
-- A blank line ends a statement.

-- The migrations that made this schema. A new database has one row: the newest number.
CREATE TABLE migrations (
    number     INTEGER PRIMARY KEY,
    name       TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL
);

-- One site, folder, repository or package that is kept, under a name and a version label.
-- A removed source is hidden at once; garbage collection deletes its rows.
CREATE TABLE sources (
    id                  UUID PRIMARY KEY,
    name                TEXT NOT NULL CHECK (name <> ''),
    version             TEXT NOT NULL DEFAULT '',
    kind                TEXT NOT NULL CHECK (kind IN ('web', 'folder', 'git', 'package')),
    root                TEXT NOT NULL,
    root_identity       TEXT,                                  -- device and inode, or the marker, of a folder
    settings            JSONB NOT NULL,
    owner               TEXT,                                  -- the API key that added it; NULL: the command line
    authority           TEXT NOT NULL DEFAULT 'owner' CHECK (authority IN ('owner', 'caller')), -- who named it
    active_generation   BIGINT,                                -- the one that queries see
    next_generation     BIGINT NOT NULL DEFAULT 1,             -- only grows: a number is never used twice
    next_run_at         TIMESTAMPTZ,                           -- of its schedule
    runs                INTEGER NOT NULL DEFAULT 0,            -- of its schedule: every n-th is a full crawl
    schedule_paused_at  TIMESTAMPTZ,                           -- by a rollback, until the next requested refresh
    validators_wrong_at TIMESTAMPTZ,                           -- a page had changed and its validators had not
    sitemap_wrong_at    TIMESTAMPTZ,                           -- it called pages modified that were not
    created_at          TIMESTAMPTZ NOT NULL,
    removed_at          TIMESTAMPTZ
);

CREATE UNIQUE INDEX one_source_per_name ON sources (name, version) WHERE removed_at IS NULL;

CREATE UNIQUE INDEX one_source_per_root ON sources (root, version) WHERE removed_at IS NULL;

CREATE INDEX sources_by_next_run ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

-- A complete state of a source, numbered 1, 2, 3 … per source.
CREATE TABLE generations (
    source_id    UUID NOT NULL REFERENCES sources (id),
    number       BIGINT NOT NULL CHECK (number > 0),
    base         BIGINT CHECK (base < number),                 -- the generation that was active when it was begun
    state        TEXT NOT NULL CHECK (state IN ('building', 'held', 'active', 'retired', 'abandoned')),
    job_id       UUID,                                         -- NULL for a rollback
    mode         TEXT CHECK (mode IN ('failed', 'quick', 'refresh', 'full')), -- of its crawl; NULL for a rollback
    settings     JSONB NOT NULL,                               -- the settings of the source at that time
    whole        BOOLEAN NOT NULL DEFAULT FALSE,               -- its crawl visited every known document
    changed      BOOLEAN NOT NULL DEFAULT FALSE,               -- it differs from its base
    cleared      BOOLEAN NOT NULL DEFAULT FALSE,               -- abandoned, and its rows are deleted
    documents    BIGINT NOT NULL DEFAULT 0,                    -- how many it shows
    tally        JSONB NOT NULL DEFAULT '{}',                  -- URLs by outcome
    partial      TEXT,                                         -- why it is not complete
    reason       TEXT,
    created_at   TIMESTAMPTZ NOT NULL,
    activated_at TIMESTAMPTZ,
    PRIMARY KEY (source_id, number)
);

ALTER TABLE sources ADD FOREIGN KEY (id, active_generation) REFERENCES generations (source_id, number)
    DEFERRABLE INITIALLY DEFERRED;

-- Queries see one generation of a source, and at most one is being built or waits for a decision.
CREATE UNIQUE INDEX one_active_generation ON generations (source_id) WHERE state = 'active';

CREATE UNIQUE INDEX one_next_generation ON generations (source_id) WHERE state IN ('building', 'held');

-- A page or file of a source for its whole life; its id survives moves. Only exceptions (missing, in error, deleted)
-- carry times and counters of their own; an active document shares those of its generation.
CREATE TABLE documents (
    id               UUID PRIMARY KEY,
    source_id        UUID NOT NULL REFERENCES sources (id),
    first_seen       TIMESTAMPTZ NOT NULL,
    first_generation BIGINT NOT NULL,
    lifecycle        TEXT NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'missing', 'error', 'deleted')),
    since            TIMESTAMPTZ,                              -- when it entered this state; NULL while active
    missed_crawls    BIGINT NOT NULL DEFAULT 0,
    retry_count      BIGINT NOT NULL DEFAULT 0,
    reason           TEXT,
    verified_at      TIMESTAMPTZ,                              -- NULL: as its generation
    former_id        TEXT,                                     -- the doc_id of the manifest it was imported from, if not its id
    CHECK ((lifecycle = 'active') = (since IS NULL))
);

CREATE INDEX documents_of_generation ON documents (source_id, first_generation);

CREATE INDEX documents_exceptional ON documents (source_id, lifecycle)
    WHERE lifecycle <> 'active' OR verified_at IS NOT NULL;

CREATE INDEX documents_by_former_id ON documents (former_id) WHERE former_id IS NOT NULL;

-- Title and Markdown behind one hash, stored once however many documents, versions and sources share it.
CREATE TABLE contents (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash     TEXT NOT NULL UNIQUE,
    title    TEXT NOT NULL,
    markdown BYTEA NOT NULL,                                   -- UTF-8, zstd
    size     BIGINT NOT NULL,                                  -- of the Markdown, in characters
    kind     TEXT NOT NULL DEFAULT 'page'
             CHECK (kind IN ('page', 'index', 'contents', 'changelog', 'glossary', 'search', 'manual', 'stub')),
    places   BYTEA NOT NULL DEFAULT ''                         -- ids and names in its text: JSON, zstd
);

-- The Markdown and the places are compressed already.
ALTER TABLE contents ALTER COLUMN markdown SET STORAGE EXTERNAL;

ALTER TABLE contents ALTER COLUMN places SET STORAGE EXTERNAL;

-- A document over a range of generations: visible where born <= generation < died.
CREATE TABLE versions (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id     UUID NOT NULL REFERENCES sources (id),
    document_id   UUID NOT NULL REFERENCES documents (id),
    born          BIGINT NOT NULL,
    died          BIGINT CHECK (died > born),                  -- NULL while it lives on
    pending       BOOLEAN NOT NULL DEFAULT FALSE,              -- replaces a living version when its generation is activated
    read_again    BOOLEAN NOT NULL DEFAULT FALSE,              -- same bytes, another reader: not a change of the page
    url           TEXT NOT NULL,
    canonical     TEXT,                                        -- the URL that the page itself gives as its canonical one
    content_id    BIGINT NOT NULL REFERENCES contents (id),
    content_type  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT NOT NULL,
    signature     TEXT NOT NULL,                               -- of the reader and the settings that made the content
    depth         BIGINT NOT NULL,
    links         BYTEA NOT NULL,                              -- one a line, zstd
    fetched_at    TIMESTAMPTZ NOT NULL,
    end_reason    TEXT,                                        -- why the document was removed; NULL if another version follows
    UNIQUE (document_id, born)
);

CREATE UNIQUE INDEX one_living_version ON versions (document_id) WHERE died IS NULL AND NOT pending;

CREATE UNIQUE INDEX one_living_document_per_url ON versions (source_id, url) WHERE died IS NULL AND NOT pending;

CREATE INDEX versions_by_born ON versions (source_id, born);

CREATE INDEX versions_by_died ON versions (source_id, died) WHERE died IS NOT NULL;

CREATE INDEX versions_by_content ON versions (content_id);

CREATE INDEX versions_by_url ON versions (source_id, url);

CREATE INDEX versions_with_canonical ON versions (source_id) WHERE canonical IS NOT NULL AND died IS NULL;

-- The words of full text: runs of letters and digits, stemmed as English, none left out. The parser must not see a host,
-- a file or a tag in an identifier, so punctuation is replaced by spaces first (section_words).
CREATE TEXT SEARCH DICTIONARY kept_words (TEMPLATE = snowball, LANGUAGE = english);

CREATE TEXT SEARCH CONFIGURATION kept (COPY = simple);

ALTER TEXT SEARCH CONFIGURATION kept ALTER MAPPING FOR asciiword, word, numword WITH kept_words;

-- The full text of a section: defined names weigh A, headings B, code C, prose D.
CREATE FUNCTION section_words(names TEXT, headings TEXT, code TEXT, prose TEXT) RETURNS TSVECTOR IMMUTABLE PARALLEL SAFE
RETURN setweight(to_tsvector('kept', translate(names, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'A')
    || setweight(to_tsvector('kept', translate(headings, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'B')
    || setweight(to_tsvector('kept', translate(code, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'C')
    || setweight(to_tsvector('kept', translate(prose, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'D');

-- A node of a content's heading tree: what search finds. The client makes the id, content_id * 2^20 + position, which is
-- unique and increases.
CREATE TABLE sections (
    id                BIGINT PRIMARY KEY,
    content_id        BIGINT NOT NULL REFERENCES contents (id),
    parent_section_id BIGINT,
    position          BIGINT NOT NULL,
    level             BIGINT NOT NULL,
    heading           TEXT NOT NULL,
    headings          TEXT NOT NULL,                           -- the path from the top to this heading, one a line
    anchor            TEXT,
    text              TEXT NOT NULL,
    entry             TEXT NOT NULL DEFAULT '',                -- its name as written, if it is a named entry
    entries           TEXT NOT NULL DEFAULT '',                -- JSON: names and anchors of the entries in it
    words             TSVECTOR NOT NULL,                       -- the full text
    CHECK (id = content_id * 1048576 + position),
    CHECK (parent_section_id < id)
);

-- Most sections fit into a page together with their words. Compressed, or stored out of line, they would take longer to
-- store and to search, and not much less space.
ALTER TABLE sections SET (toast_tuple_target = 8160);

CREATE INDEX sections_of_content ON sections (content_id);

CREATE INDEX sections_by_words ON sections USING gin (words);

-- Count how common each word is, as ANALYZE does, if that was never done or much has changed since: ranking weighs words
-- by it, and autovacuum takes its time.
CREATE FUNCTION refresh_term_statistics() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_stats
                    WHERE schemaname = current_schema AND tablename = 'sections' AND attname = 'words')
       OR EXISTS (SELECT 1 FROM pg_stat_user_tables
                   WHERE relid = 'sections'::regclass AND n_mod_since_analyze > 100 + n_live_tup / 5) THEN
        ANALYZE sections (words);
    END IF;
END $$;

-- Which contents an older version of Kept indexed: those above "done", up to "last". No row: none.
CREATE TABLE index_rebuild (
    done BIGINT NOT NULL,
    last BIGINT NOT NULL
);

-- A request to build the next generation of a source, from the queue to its end.
CREATE TABLE crawl_jobs (
    id                  UUID PRIMARY KEY,
    source_id           UUID NOT NULL REFERENCES sources (id),
    payload             JSONB NOT NULL DEFAULT '{}',
    mode                TEXT NOT NULL CHECK (mode IN ('failed', 'quick', 'refresh', 'full')),
    priority            BIGINT NOT NULL DEFAULT 0,
    status              TEXT NOT NULL DEFAULT 'pending'
                        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused')),
    again               TEXT CHECK (again IN ('failed', 'quick', 'refresh', 'full')), -- requested while it ran
    again_priority      BIGINT NOT NULL DEFAULT 0,
    again_user_id       TEXT,
    worker_id           UUID,                                  -- the last to claim it
    attempt             BIGINT NOT NULL DEFAULT 0,
    generation          BIGINT,
    listed              BOOLEAN NOT NULL DEFAULT FALSE,        -- its frontier has its first entries
    lists_everything    BOOLEAN NOT NULL DEFAULT FALSE,        -- what its origin does not list does not exist
    limited             BOOLEAN NOT NULL DEFAULT FALSE,        -- a limit kept something out
    unlisted            BOOLEAN NOT NULL DEFAULT FALSE,        -- a part of the list could not be read
    held                BOOLEAN NOT NULL DEFAULT FALSE,
    batch               BIGINT NOT NULL DEFAULT 0,             -- the number of the last one
    counted             BIGINT NOT NULL DEFAULT 0,             -- the last batch that the progress includes
    counted_at          TIMESTAMPTZ,
    progress_percentage BIGINT NOT NULL DEFAULT 0,
    discovered          BIGINT NOT NULL DEFAULT 0,
    n_new               BIGINT NOT NULL DEFAULT 0,
    n_changed           BIGINT NOT NULL DEFAULT 0,
    n_unchanged         BIGINT NOT NULL DEFAULT 0,
    n_moved             BIGINT NOT NULL DEFAULT 0,
    n_gone              BIGINT NOT NULL DEFAULT 0,
    n_failed            BIGINT NOT NULL DEFAULT 0,
    n_skipped           BIGINT NOT NULL DEFAULT 0,
    n_dead_links        BIGINT NOT NULL DEFAULT 0,
    bytes               BIGINT NOT NULL DEFAULT 0,
    current_depth       BIGINT NOT NULL DEFAULT 0,
    created_at          TIMESTAMPTZ NOT NULL,
    started_at          TIMESTAMPTZ,
    claimed_at          TIMESTAMPTZ,                           -- the last time
    done_before         BIGINT NOT NULL DEFAULT 0,             -- entries that were done when it was last claimed
    completed_at        TIMESTAMPTZ,
    last_heartbeat      TIMESTAMPTZ,
    retry_count         BIGINT NOT NULL DEFAULT 0,
    max_retries         BIGINT NOT NULL DEFAULT 3,
    due_at              TIMESTAMPTZ,                       -- of a job that was interrupted; NULL: at once
    error_message       TEXT,
    user_id             TEXT
);

CREATE UNIQUE INDEX one_live_job ON crawl_jobs (source_id) WHERE status IN ('pending', 'processing', 'paused');

CREATE INDEX idx_crawl_jobs_status_priority ON crawl_jobs (status, priority DESC, created_at);

CREATE INDEX idx_crawl_jobs_worker_heartbeat ON crawl_jobs (worker_id, last_heartbeat);

CREATE INDEX crawl_jobs_of_source ON crawl_jobs (source_id, created_at);

CREATE INDEX crawl_jobs_by_end ON crawl_jobs (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX crawl_jobs_of_owner ON crawl_jobs (user_id) WHERE user_id IS NOT NULL;

-- Wake the workers that listen. A trigger, so that no way to a pending job can forget it.
CREATE FUNCTION notify_workers() RETURNS TRIGGER LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_notify('kept_jobs', NEW.id::text); RETURN NULL; END$$;

CREATE TRIGGER job_pending AFTER INSERT OR UPDATE OF status ON crawl_jobs
    FOR EACH ROW WHEN (NEW.status = 'pending') EXECUTE FUNCTION notify_workers();

-- A worker's lease of a job. The reaper deletes the row of a worker that is gone: the entries it held are free again,
-- and what it still tries to write is refused.
CREATE TABLE job_workers (
    id              UUID PRIMARY KEY,
    job_id          UUID NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    host            TEXT NOT NULL,                             -- machine and boot
    pid             BIGINT NOT NULL,
    process_started TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    beats           BIGINT NOT NULL DEFAULT 0,                 -- heartbeats so far
    joined_at       TIMESTAMPTZ NOT NULL,
    last_heartbeat  TIMESTAMPTZ NOT NULL
);

CREATE INDEX job_workers_of_job ON job_workers (job_id);

-- How many requests at once each lease may have open at a host. A share goes with its lease, and expires unless renewed.
CREATE TABLE host_shares (
    host        TEXT NOT NULL,
    lease_id    UUID NOT NULL REFERENCES job_workers (id) ON DELETE CASCADE,
    concurrency BIGINT NOT NULL,                               -- what its source allows for all leases together
    slots       BIGINT NOT NULL,                               -- what this lease may use
    joined_at   TIMESTAMPTZ NOT NULL,
    renewed_at  TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (host, lease_id)
);

CREATE INDEX host_shares_of_lease ON host_shares (lease_id);

-- The URLs of a job: open (no outcome, no worker), leased (no outcome, a worker) or done (an outcome). That of the last
-- full crawl of a source is kept as its ledger.
CREATE TABLE frontier (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id        UUID NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    depth         BIGINT NOT NULL,
    parent_url    TEXT,
    reached       BOOLEAN NOT NULL,                            -- a link, a seed or a redirect leads to it
    version_id    BIGINT,                                      -- the version that the base shows at this URL
    document_id   UUID,
    worker_id     UUID REFERENCES job_workers (id) ON DELETE SET NULL,
    due_at        TIMESTAMPTZ NOT NULL,
    attempts      BIGINT NOT NULL DEFAULT 0,
    outcome       TEXT CHECK (outcome IN ('new', 'changed', 'unchanged', 'moved', 'gone', 'failed', 'skipped', 'dead_link')),
    reason        TEXT,
    http_status   BIGINT,
    visited_at    TIMESTAMPTZ,
    batch         BIGINT,
    by_settings   BOOLEAN NOT NULL DEFAULT FALSE,              -- the settings of the source exclude it
    redirect_to   TEXT,
    renews        BOOLEAN NOT NULL DEFAULT FALSE,              -- activation copies the columns below to the living version
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT,
    signature     TEXT,
    links         BYTEA,
    canonical     TEXT,
    family        TEXT,                                        -- what its URL has in common with many others
    deferred      BOOLEAN NOT NULL DEFAULT FALSE,              -- waits until nothing else is open; then the guards decide
    round         BIGINT,                                      -- the round in which its family was admitted
    UNIQUE (job_id, url),
    CHECK (outcome IS NULL OR worker_id IS NULL)
);

CREATE INDEX frontier_unfinished ON frontier (job_id, deferred, reached, due_at, id) WHERE outcome IS NULL;

CREATE INDEX frontier_leased ON frontier (worker_id) WHERE worker_id IS NOT NULL;

CREATE INDEX frontier_exceptions ON frontier (job_id) WHERE outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link');

CREATE INDEX frontier_by_family ON frontier (job_id, family) WHERE family IS NOT NULL;

CREATE INDEX frontier_unreached ON frontier (job_id) WHERE NOT reached;

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
    id         UUID PRIMARY KEY,
    source_id  UUID NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    receiver   TEXT NOT NULL CHECK (receiver IN ('operator', 'source')), -- whose webhook
    event      TEXT NOT NULL CHECK (event IN ('activated', 'held', 'failed')),
    payload    JSONB NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    due_at     TIMESTAMPTZ,                                    -- NULL: given up
    error      TEXT
);

CREATE INDEX notifications_due ON notifications (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX notifications_of_source ON notifications (source_id);

-- Embedding models: at most one serves queries and one is wanted, that is, about to replace it.
CREATE TABLE models (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    dimensions BIGINT,                                         -- NULL: it has no vector yet
    state      TEXT NOT NULL CHECK (state IN ('wanted', 'serving', 'former')),
    created_at TIMESTAMPTZ NOT NULL
);

CREATE UNIQUE INDEX one_model_serves ON models (state) WHERE state <> 'former';

-- The hash of the exact text that is embedded for a section.
CREATE TABLE section_texts (
    section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL
);

CREATE INDEX section_texts_by_hash ON section_texts (hash);

-- The vector of a text by a model. Plain numbers, so that the table exists without pgvector; the index is pgvector's.
CREATE TABLE vectors (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model_id BIGINT NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    vector   REAL[] NOT NULL,
    UNIQUE (model_id, hash)
);

-- Texts that a process is embedding, until then; and those that the model refused, with its error.
CREATE TABLE embedding_claims (
    model_id BIGINT NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    until    TIMESTAMPTZ NOT NULL,
    error    TEXT,
    PRIMARY KEY (model_id, hash)
);

-- The embedding backlog: contents with sections that may have no vector of the wanted, or else the serving, model.
CREATE TABLE unembedded (
    content_id BIGINT PRIMARY KEY REFERENCES contents (id) ON DELETE CASCADE,
    due_at     TIMESTAMPTZ NOT NULL DEFAULT '-infinity'        -- at once
);

CREATE FUNCTION queue_unembedded() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO unembedded (content_id) SELECT id FROM added ORDER BY id;
    RETURN NULL;
END $$;

CREATE TRIGGER content_inserted AFTER INSERT ON contents
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION queue_unembedded();

-- Return whether vectors can be compared here. Create the extension pgvector if it is installed and that is permitted.
CREATE FUNCTION prepare_vectors() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    IF to_regtype('halfvec') IS NULL THEN
        CREATE EXTENSION IF NOT EXISTS vector;
    END IF;
    RETURN to_regtype('halfvec') IS NOT NULL; -- older ones have no half precision
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR unique_violation THEN
    RETURN to_regtype('halfvec') IS NOT NULL;
END $$;

-- Index the vectors of a model once there are so many that comparing all of them would be slow. Return whether it did.
CREATE FUNCTION create_vector_index(of_model BIGINT, enough BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    size BIGINT := (SELECT dimensions FROM models WHERE id = of_model);
BEGIN
    IF size IS NULL OR size > 4000 OR to_regclass(format('vectors_near_%s', of_model)) IS NOT NULL
       OR (SELECT count(*) FROM (SELECT FROM vectors WHERE model_id = of_model LIMIT enough) AS counted) < enough THEN
        RETURN FALSE;
    END IF;
    EXECUTE format('CREATE INDEX IF NOT EXISTS vectors_near_%1$s ON vectors '
                   'USING hnsw ((vector::halfvec(%2$s)) halfvec_ip_ops) WHERE model_id = %1$s', of_model, size);
    RETURN TRUE;
END $$;

-- Return the vectors nearest to a query, best first: of all, or of those among some ids.
CREATE FUNCTION nearest_vectors(of_model BIGINT, query TEXT, most BIGINT, among BIGINT[])
RETURNS TABLE (id BIGINT, score DOUBLE PRECISION) LANGUAGE plpgsql AS $$
DECLARE
    size BIGINT := (SELECT m.dimensions FROM models m WHERE m.id = of_model);
BEGIN
    IF among IS NOT NULL THEN
        RETURN QUERY EXECUTE format(
            'SELECT v.id, -(v.vector::halfvec(%1$s) <#> $1::halfvec(%1$s)) AS score
               FROM vectors v WHERE v.model_id = $2 AND v.id = ANY($3) ORDER BY score DESC, v.id LIMIT $4', size)
            USING query, of_model, among, most;
        RETURN;
    END IF;
    PERFORM set_config('hnsw.ef_search', least(1000, greatest(200, 2 * most))::text, TRUE);
    -- Written out, not as parameters: that is how the planner sees that the index is meant.
    RETURN QUERY EXECUTE format(
        'SELECT v.id, -(v.vector::halfvec(%1$s) <#> %2$L::halfvec(%1$s)) AS score FROM vectors v
          WHERE v.model_id = %3$s ORDER BY v.vector::halfvec(%1$s) <#> %2$L::halfvec(%1$s) LIMIT %4$s',
        size, query, of_model, most);
END $$;

-- Drop the index of a model that no longer serves.
CREATE FUNCTION drop_vector_index(of_model BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS vectors_near_%s', of_model);
END $$;

-- API keys.
CREATE TABLE keys (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,                           -- SHA-256; the key itself is not stored
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at TIMESTAMPTZ NOT NULL
);

-- Requests with an Idempotency-Key, and the job that each led to.
CREATE TABLE idempotency_keys (
    owner      TEXT NOT NULL,
    key        TEXT NOT NULL,
    request    TEXT NOT NULL,
    job_id     UUID REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    created_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id);

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

-- Maintenance passes that one process makes for all: when each was last started.
CREATE TABLE maintenance_passes (
    name       TEXT PRIMARY KEY,
    started_at TIMESTAMPTZ NOT NULL
);

-- The time so many seconds ago. On SQLite the client defines a function of this name.
CREATE FUNCTION ago(seconds DOUBLE PRECISION) RETURNS TIMESTAMPTZ STABLE RETURN now() - make_interval(secs => seconds);
