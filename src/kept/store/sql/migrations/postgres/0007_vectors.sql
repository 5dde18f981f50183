-- What sections mean, as vectors: made beside the crawl, once for each text and model.

CREATE TABLE models (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    dimensions BIGINT,                                      -- none: it has no vector yet
    state      TEXT NOT NULL CHECK (state IN ('wanted', 'serving', 'former')),
    created_at TIMESTAMPTZ NOT NULL
);

-- One answers, and one may be about to take its place.
CREATE UNIQUE INDEX one_model_serves ON models (state) WHERE state <> 'former';

-- The exact text that was embedded for a section, by its hash.
CREATE TABLE section_texts (
    section_id BIGINT PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL
);

CREATE INDEX section_texts_by_hash ON section_texts (hash);

-- Plain numbers, so that the table can be had without pgvector; the index over them is pgvector's.
CREATE TABLE vectors (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model_id BIGINT NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    vector   REAL[] NOT NULL,
    UNIQUE (model_id, hash)
);

-- Texts that somebody is embedding, until then; and those that the model does not take, with what it said.
CREATE TABLE texts_taken (
    model_id BIGINT NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    until    TIMESTAMPTZ NOT NULL,
    error    TEXT,
    PRIMARY KEY (model_id, hash)
);

-- Contents of which a section may have no vector of the model that is wanted, or serves if none is.
CREATE TABLE unembedded (
    content_id BIGINT PRIMARY KEY REFERENCES contents (id) ON DELETE CASCADE,
    due_at     TIMESTAMPTZ NOT NULL DEFAULT '-infinity'     -- at once
);

CREATE FUNCTION note_unembedded() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO unembedded (content_id) SELECT id FROM added ORDER BY id;
    RETURN NULL;
END $$;

CREATE TRIGGER content_inserted AFTER INSERT ON contents
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION note_unembedded();

INSERT INTO unembedded (content_id) SELECT id FROM contents;

-- Whether vectors can be compared here. Makes pgvector available if it is installed and we may.
CREATE FUNCTION prepare_vectors() RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    IF to_regtype('halfvec') IS NULL THEN
        CREATE EXTENSION IF NOT EXISTS vector;
    END IF;
    RETURN to_regtype('halfvec') IS NOT NULL; -- older ones have no half precision
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR unique_violation THEN
    RETURN to_regtype('halfvec') IS NOT NULL;
END $$;

-- An index over the vectors of a model, once there are so many that comparing all of them would be slow.
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

-- The vectors nearest to :query, of all or among some, best first.
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

CREATE FUNCTION forget_vectors(of_model BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS vectors_near_%s', of_model);
END $$;
