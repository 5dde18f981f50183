-- What sections mean, as vectors: made beside the crawl, once for each text and model.

CREATE TABLE models (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    dimensions INTEGER,                                     -- none: it has no vector yet
    state      TEXT NOT NULL CHECK (state IN ('wanted', 'serving', 'former')),
    created_at TEXT NOT NULL
) STRICT;

-- One answers, and one may be about to take its place.
CREATE UNIQUE INDEX one_model_serves ON models (state) WHERE state <> 'former';

-- The exact text that was embedded for a section, by its hash.
CREATE TABLE section_texts (
    section_id INTEGER PRIMARY KEY REFERENCES sections (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL
) STRICT;

CREATE INDEX section_texts_by_hash ON section_texts (hash);

-- An id is never used twice and always grows, so whoever has read up to one only needs what comes after it.
CREATE TABLE vectors (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    model_id INTEGER NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    vector   BLOB NOT NULL,                                 -- a scale in four bytes, then a byte for each number
    UNIQUE (model_id, hash)
) STRICT;

-- Texts that somebody is embedding, until then; and those that the model does not take, with what it said.
CREATE TABLE texts_taken (
    model_id INTEGER NOT NULL REFERENCES models (id),
    hash     TEXT NOT NULL,
    until    TEXT NOT NULL,
    error    TEXT,
    PRIMARY KEY (model_id, hash)
) STRICT, WITHOUT ROWID;

-- Contents of which a section may have no vector of the model that is wanted, or serves if none is.
CREATE TABLE unembedded (
    content_id INTEGER PRIMARY KEY REFERENCES contents (id) ON DELETE CASCADE,
    due_at     TEXT NOT NULL DEFAULT ''                     -- empty: at once
) STRICT;

CREATE TRIGGER content_inserted AFTER INSERT ON contents BEGIN
    INSERT INTO unembedded (content_id) VALUES (new.id);
END;

INSERT INTO unembedded (content_id) SELECT id FROM contents;
