-- name: insert_content
-- In the order of their hashes, so that two workers cannot wait for each other.
WITH {rows hash text, title text, markdown bytea, size bigint, kind text, places bytea}
INSERT INTO contents (hash, title, markdown, size, kind, places)
SELECT new.hash, new.title, new.markdown, new.size, new.kind, new.places FROM new WHERE TRUE {postgres: ORDER BY new.hash}
ON CONFLICT (hash) DO NOTHING;

-- name: delete_contents
DELETE FROM contents
 WHERE id {in :ids} AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.content_id = contents.id {postgres: OFFSET 0});

-- name: unreferenced_contents
-- Contents that no version has, after an id. (OFFSET 0: looked up one by one, not joined with all versions again and again.)
SELECT c.id FROM contents c
 WHERE c.id > :after AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.content_id = c.id {postgres: OFFSET 0})
 ORDER BY c.id LIMIT :limit;

-- name: still_unreferenced_contents
-- Checked once more, now that they are locked: a crawl may have used one before that.
SELECT id FROM contents c
 WHERE id {in :ids} AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.content_id = c.id {postgres: OFFSET 0});

-- name: content
SELECT id, hash, title, markdown, kind, places FROM contents WHERE id = :id;

-- name: places_of_content
SELECT places FROM contents WHERE id = :id;

-- name: lock_contents_by_hash
-- The contents that are stored already, locked against garbage collection until this transaction ends.
SELECT id, hash FROM contents WHERE hash {in :hashes} ORDER BY hash {for key share};

-- name: lock_contents_for_deletion
-- Those that another transaction is about to use are left out.
SELECT id FROM contents WHERE id {in :ids} ORDER BY id {for update skip locked};

-- name: lock_contents_by_id
SELECT id FROM contents WHERE id {in :contents} ORDER BY id {for key share};
