-- The schema numbered 16, in the steps that made a PostgreSQL database of it. Tests upgrade it.

CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL);

CREATE TABLE sources (
    id                UUID PRIMARY KEY,
    name              TEXT NOT NULL CHECK (name <> ''),
    version           TEXT NOT NULL DEFAULT '',
    kind              TEXT NOT NULL CHECK (kind IN ('web', 'folder', 'git')),
    root              TEXT NOT NULL,
    settings          JSONB NOT NULL,
    active_generation BIGINT,
    next_generation   BIGINT NOT NULL DEFAULT 1,
    created_at        TIMESTAMPTZ NOT NULL,
    removed_at        TIMESTAMPTZ
);

CREATE UNIQUE INDEX one_source_per_name ON sources (name, version) WHERE removed_at IS NULL;

CREATE UNIQUE INDEX one_source_per_root ON sources (root, version) WHERE removed_at IS NULL;

CREATE TABLE generations (
    source_id    UUID NOT NULL REFERENCES sources (id),
    number       BIGINT NOT NULL CHECK (number > 0),
    base         BIGINT CHECK (base < number),
    state        TEXT NOT NULL CHECK (state IN ('building', 'held', 'active', 'retired', 'abandoned')),
    job_id       UUID,
    settings     JSONB NOT NULL,                             -- the source's settings it was made with
    whole        BOOLEAN NOT NULL DEFAULT FALSE,
    changed      BOOLEAN NOT NULL DEFAULT FALSE,
    cleared      BOOLEAN NOT NULL DEFAULT FALSE,
    documents    BIGINT NOT NULL DEFAULT 0,
    tally        JSONB NOT NULL DEFAULT '{}',
    partial      TEXT,
    reason       TEXT,
    created_at   TIMESTAMPTZ NOT NULL,
    activated_at TIMESTAMPTZ,
    PRIMARY KEY (source_id, number)
);

ALTER TABLE sources ADD FOREIGN KEY (id, active_generation) REFERENCES generations (source_id, number)
    DEFERRABLE INITIALLY DEFERRED;

CREATE UNIQUE INDEX one_active_generation ON generations (source_id) WHERE state = 'active';

CREATE UNIQUE INDEX one_next_generation ON generations (source_id) WHERE state IN ('building', 'held');

CREATE TABLE documents (
    id               UUID PRIMARY KEY,
    source_id        UUID NOT NULL REFERENCES sources (id),
    first_seen       TIMESTAMPTZ NOT NULL,
    first_generation BIGINT NOT NULL,
    lifecycle        TEXT NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'missing', 'error', 'deleted')),
    since            TIMESTAMPTZ,
    missed_crawls    BIGINT NOT NULL DEFAULT 0,
    retry_count      BIGINT NOT NULL DEFAULT 0,
    reason           TEXT,
    verified_at      TIMESTAMPTZ,
    CHECK ((lifecycle = 'active') = (since IS NULL))
);

CREATE INDEX documents_of_generation ON documents (source_id, first_generation);

CREATE INDEX documents_exceptional ON documents (source_id, lifecycle)
    WHERE lifecycle <> 'active' OR verified_at IS NOT NULL;

CREATE TABLE contents (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash     TEXT NOT NULL UNIQUE,
    title    TEXT NOT NULL,
    markdown BYTEA NOT NULL,
    size     BIGINT NOT NULL
);

CREATE TABLE versions (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id     UUID NOT NULL REFERENCES sources (id),
    document_id   UUID NOT NULL REFERENCES documents (id),
    born          BIGINT NOT NULL,
    died          BIGINT CHECK (died > born),
    pending       BOOLEAN NOT NULL DEFAULT FALSE,
    read_again    BOOLEAN NOT NULL DEFAULT FALSE,
    url           TEXT NOT NULL,
    content_id    BIGINT NOT NULL REFERENCES contents (id),
    content_type  TEXT NOT NULL,
    etag          TEXT,
    last_modified TEXT,
    raw_hash      TEXT NOT NULL,
    signature     TEXT NOT NULL,
    depth         BIGINT NOT NULL,
    links         BYTEA NOT NULL,
    fetched_at    TIMESTAMPTZ NOT NULL,
    UNIQUE (document_id, born)
);

CREATE UNIQUE INDEX one_living_version ON versions (document_id) WHERE died IS NULL AND NOT pending;

CREATE UNIQUE INDEX one_living_document_per_url ON versions (source_id, url) WHERE died IS NULL AND NOT pending;

CREATE INDEX versions_by_born ON versions (source_id, born);

CREATE INDEX versions_by_died ON versions (source_id, died) WHERE died IS NOT NULL;

CREATE INDEX versions_by_content ON versions (content_id);

CREATE INDEX versions_by_url ON versions (url);

CREATE TABLE sections (
    id                BIGINT PRIMARY KEY,
    content_id        BIGINT NOT NULL REFERENCES contents (id),
    parent_section_id BIGINT,
    position          BIGINT NOT NULL,
    level             BIGINT NOT NULL,
    heading           TEXT NOT NULL,
    headings          TEXT NOT NULL,
    anchor            TEXT,
    text              TEXT NOT NULL,
    words             TSVECTOR NOT NULL,
    CHECK (id = content_id * 1048576 + position),
    CHECK (parent_section_id < id)
);

CREATE INDEX sections_of_content ON sections (content_id);

CREATE INDEX sections_by_words ON sections USING gin (words);

CREATE TABLE crawl_jobs (
    id                  UUID PRIMARY KEY,
    source_id           UUID NOT NULL REFERENCES sources (id),
    payload             JSONB NOT NULL DEFAULT '{}',
    mode                TEXT NOT NULL CHECK (mode IN ('failed', 'refresh', 'full')),
    priority            BIGINT NOT NULL DEFAULT 0,
    status              TEXT NOT NULL DEFAULT 'pending'
                        CHECK (status IN ('pending', 'processing', 'completed', 'failed', 'cancelled', 'paused')),
    again               TEXT CHECK (again IN ('failed', 'refresh', 'full')),
    worker_id           UUID,
    attempt             BIGINT NOT NULL DEFAULT 0,
    generation          BIGINT,
    listed              BOOLEAN NOT NULL DEFAULT FALSE,
    lists_everything    BOOLEAN NOT NULL DEFAULT FALSE,
    limited             BOOLEAN NOT NULL DEFAULT FALSE,
    unlisted            BOOLEAN NOT NULL DEFAULT FALSE,
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

CREATE TABLE job_workers (
    id              UUID PRIMARY KEY,
    job_id          UUID NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    host            TEXT NOT NULL,
    pid             BIGINT NOT NULL,
    process_started TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    beats           BIGINT NOT NULL DEFAULT 0,
    joined_at       TIMESTAMPTZ NOT NULL,
    last_heartbeat  TIMESTAMPTZ NOT NULL
);

CREATE INDEX job_workers_of_job ON job_workers (job_id);

CREATE TABLE frontier (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id        UUID NOT NULL REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    depth         BIGINT NOT NULL,
    parent_url    TEXT,
    reached       BOOLEAN NOT NULL,
    version_id    BIGINT,
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
    renews        BOOLEAN NOT NULL DEFAULT FALSE,
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

CREATE FUNCTION ago(seconds DOUBLE PRECISION) RETURNS TIMESTAMPTZ STABLE RETURN now() - make_interval(secs => seconds);

ALTER TABLE sources ADD COLUMN schedule_paused_at TIMESTAMPTZ;

ALTER TABLE versions ADD COLUMN canonical TEXT;

ALTER TABLE frontier ADD COLUMN canonical TEXT;

CREATE INDEX versions_with_canonical ON versions (source_id) WHERE canonical IS NOT NULL AND died IS NULL;

ALTER TABLE crawl_jobs ADD COLUMN claimed_at TIMESTAMPTZ;

ALTER TABLE crawl_jobs ADD COLUMN done_before BIGINT NOT NULL DEFAULT 0;

CREATE TABLE host_shares (
    host       TEXT NOT NULL,
    place_id   UUID NOT NULL REFERENCES job_workers (id) ON DELETE CASCADE,
    at_once    BIGINT NOT NULL,
    slots      BIGINT NOT NULL,
    joined_at  TIMESTAMPTZ NOT NULL,
    renewed_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (host, place_id)
);

CREATE INDEX host_shares_of_place ON host_shares (place_id);

CREATE FUNCTION call_workers() RETURNS TRIGGER LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_notify('kept_jobs', NEW.id::text); RETURN NULL; END$$;

CREATE TRIGGER job_waits AFTER INSERT OR UPDATE OF status ON crawl_jobs
    FOR EACH ROW WHEN (NEW.status = 'pending') EXECUTE FUNCTION call_workers();

ALTER TABLE sources ADD COLUMN next_run_at TIMESTAMPTZ;

ALTER TABLE sources ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;

ALTER TABLE sources ADD COLUMN validators_wrong_at TIMESTAMPTZ;

CREATE INDEX sources_by_next_run ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

ALTER TABLE crawl_jobs DROP CONSTRAINT crawl_jobs_mode_check;

ALTER TABLE crawl_jobs ADD CONSTRAINT crawl_jobs_mode_check CHECK (mode IN ('failed', 'quick', 'refresh', 'full'));

ALTER TABLE crawl_jobs DROP CONSTRAINT crawl_jobs_again_check;

ALTER TABLE crawl_jobs ADD CONSTRAINT crawl_jobs_again_check CHECK (again IN ('failed', 'quick', 'refresh', 'full'));

ALTER TABLE generations ADD COLUMN mode TEXT CHECK (mode IN ('failed', 'quick', 'refresh', 'full'));

UPDATE generations SET mode = (SELECT j.mode FROM crawl_jobs j WHERE j.id = generations.job_id);

CREATE TABLE notices (
    id         UUID PRIMARY KEY,
    source_id  UUID NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    receiver   TEXT NOT NULL CHECK (receiver IN ('operator', 'source')),
    event      TEXT NOT NULL CHECK (event IN ('activated', 'held', 'failed')),
    payload    JSONB NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    due_at     TIMESTAMPTZ,
    error      TEXT
);

CREATE INDEX notices_due ON notices (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX notices_of_source ON notices (source_id);

ALTER TABLE sources DROP CONSTRAINT sources_kind_check;

ALTER TABLE sources ADD CONSTRAINT sources_kind_check CHECK (kind IN ('web', 'folder', 'git', 'package'));

CREATE TABLE models (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    dimensions BIGINT,
    state      TEXT NOT NULL CHECK (state IN ('wanted', 'serving', 'former')),
    created_at TIMESTAMPTZ NOT NULL
);

CREATE UNIQUE INDEX one_model_serves ON models (state) WHERE state <> 'former';

CREATE TABLE section_texts (
    section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL
);

CREATE INDEX section_texts_by_hash ON section_texts (hash);

CREATE TABLE vectors (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model_id BIGINT NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    vector   REAL[] NOT NULL,
    UNIQUE (model_id, hash)
);

CREATE TABLE texts_taken (
    model_id BIGINT NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    until    TIMESTAMPTZ NOT NULL,
    error    TEXT,
    PRIMARY KEY (model_id, hash)
);

CREATE TABLE unembedded (
    content_id BIGINT PRIMARY KEY REFERENCES contents (id) ON DELETE CASCADE,
    due_at     TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
);

CREATE FUNCTION note_unembedded() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO unembedded (content_id) SELECT id FROM added ORDER BY id;
    RETURN NULL;
END $$;

CREATE TRIGGER content_inserted AFTER INSERT ON contents
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_unembedded();

INSERT INTO unembedded (content_id) SELECT id FROM contents;

CREATE FUNCTION prepare_vectors() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    IF to_regtype('halfvec') IS NULL THEN
        CREATE EXTENSION IF NOT EXISTS vector;
    END IF;
    RETURN to_regtype('halfvec') IS NOT NULL;
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR unique_violation THEN
    RETURN to_regtype('halfvec') IS NOT NULL;
END $$;

CREATE FUNCTION index_vectors(of_model BIGINT, enough BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
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
    RETURN QUERY EXECUTE format(
        'SELECT v.id, -(v.vector::halfvec(%1$s) <#> %2$L::halfvec(%1$s)) AS score FROM vectors v
          WHERE v.model_id = %3$s ORDER BY v.vector::halfvec(%1$s) <#> %2$L::halfvec(%1$s) LIMIT %4$s',
        size, query, of_model, most);
END $$;

CREATE FUNCTION forget_vectors(of_model BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS vectors_near_%s', of_model);
END $$;

ALTER TABLE sources ADD COLUMN sitemap_wrong_at TIMESTAMPTZ;

ALTER TABLE sources ADD COLUMN root_identity TEXT;

CREATE TABLE keys (
    name       TEXT PRIMARY KEY,
    hash       TEXT NOT NULL UNIQUE,
    scope      TEXT NOT NULL CHECK (scope IN ('read', 'write', 'admin')),
    created_at TIMESTAMPTZ NOT NULL
);

CREATE TABLE asked_once (
    owner    TEXT NOT NULL,
    key      TEXT NOT NULL,
    request  TEXT NOT NULL,
    job_id   UUID REFERENCES crawl_jobs (id) ON DELETE CASCADE,
    asked_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (owner, key)
);

CREATE INDEX asked_once_by_job ON asked_once (job_id);

CREATE INDEX asked_once_by_time ON asked_once (asked_at);

ALTER TABLE sources ADD COLUMN owner TEXT;

CREATE INDEX frontier_by_batch ON frontier (job_id, batch, id) WHERE batch IS NOT NULL;

CREATE INDEX crawl_jobs_by_end ON crawl_jobs (completed_at) WHERE completed_at IS NOT NULL;

CREATE INDEX crawl_jobs_of_owner ON crawl_jobs (user_id) WHERE user_id IS NOT NULL;

CREATE TEXT SEARCH DICTIONARY kept_words (TEMPLATE = snowball, LANGUAGE = english);

CREATE TEXT SEARCH CONFIGURATION kept (COPY = simple);

ALTER TEXT SEARCH CONFIGURATION kept ALTER MAPPING FOR asciiword, word, numword WITH kept_words;

CREATE FUNCTION section_words(names TEXT, headings TEXT, code TEXT, prose TEXT) RETURNS TSVECTOR IMMUTABLE PARALLEL SAFE
RETURN setweight(to_tsvector('kept', translate(names, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'A')
    || setweight(to_tsvector('kept', translate(headings, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'B')
    || setweight(to_tsvector('kept', translate(code, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'C')
    || setweight(to_tsvector('kept', translate(prose, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'D');

UPDATE sections SET words = section_words(heading || ' ' || COALESCE(anchor, ''), headings, '', text);

CREATE FUNCTION renew_word_statistics() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_stats
                    WHERE schemaname = current_schema AND tablename = 'sections' AND attname = 'words')
       OR EXISTS (SELECT 1 FROM pg_stat_user_tables
                   WHERE relid = 'sections'::regclass AND n_mod_since_analyze > 100 + n_live_tup / 5) THEN
        ANALYZE sections (words);
    END IF;
END $$;

ALTER TABLE crawl_jobs ADD COLUMN counted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE crawl_jobs ADD COLUMN counted_at TIMESTAMPTZ;
UPDATE crawl_jobs SET counted = batch;

ALTER TABLE crawl_jobs DROP COLUMN run_after;

CREATE TABLE passes (
    name     TEXT PRIMARY KEY,
    begun_at TIMESTAMPTZ NOT NULL
);

ALTER TABLE sections SET (toast_tuple_target = 8160);

ALTER TABLE contents ALTER COLUMN markdown SET STORAGE EXTERNAL;

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
