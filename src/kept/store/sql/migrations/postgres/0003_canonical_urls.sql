-- A page may say that it should be known by another URL. It is dropped where that one says the same.

ALTER TABLE versions ADD COLUMN canonical TEXT;

ALTER TABLE frontier ADD COLUMN canonical TEXT;

CREATE INDEX versions_with_canonical ON versions (source_id) WHERE canonical IS NOT NULL AND died IS NULL;
