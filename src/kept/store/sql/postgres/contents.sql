-- name: insert_content
-- Contents are inserted in the order of their hashes, so that two workers cannot wait for each other.
INSERT INTO contents (hash, title, markdown, size)
SELECT r.hash, r.title, r.markdown, r.size
  FROM unnest(:hash::text[], :title::text[], :markdown::bytea[], :size::bigint[]) AS r (hash, title, markdown, size)
 ORDER BY r.hash
ON CONFLICT (hash) DO NOTHING;

-- name: hold_contents
-- The contents that are there already, locked against garbage collection until this transaction ends.
SELECT id, hash FROM contents WHERE hash = ANY(:hashes) ORDER BY hash FOR KEY SHARE;

-- name: lock_contents
-- Those that somebody is about to use are passed over.
SELECT id FROM contents WHERE id = ANY(:ids) ORDER BY id FOR UPDATE SKIP LOCKED;
