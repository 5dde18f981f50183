-- A content has a kind, and the places in its text; a section may be a named entry, or hold some.
ALTER TABLE contents ADD COLUMN kind TEXT NOT NULL DEFAULT 'page'
    CHECK (kind IN ('page', 'index', 'contents', 'changelog', 'glossary', 'search', 'manual', 'stub'));

ALTER TABLE contents ADD COLUMN places BYTEA NOT NULL DEFAULT '';

ALTER TABLE contents ALTER COLUMN places SET STORAGE EXTERNAL;

ALTER TABLE sections ADD COLUMN entry TEXT NOT NULL DEFAULT '';

ALTER TABLE sections ADD COLUMN entries TEXT NOT NULL DEFAULT '';
