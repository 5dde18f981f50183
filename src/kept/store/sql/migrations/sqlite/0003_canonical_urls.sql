-- A page may say that it should be known by another URL. It is dropped where that one says the same.

ALTER TABLE versions ADD COLUMN canonical TEXT;

ALTER TABLE frontier ADD COLUMN canonical TEXT;

CREATE INDEX versions_with_canonical ON versions (source_id) WHERE canonical IS NOT NULL AND died IS NULL;

-- SQLite uses a partial index only where a statement asks in the same words.
DROP INDEX frontier_renewed;

CREATE INDEX frontier_renewed ON frontier (job_id) WHERE renews;

-- Full text is written once a batch, in the batch's transaction (index_sections), not once a row.
-- Rows still take their words with them when they go: section_deleted stays.
DROP TRIGGER section_inserted;
