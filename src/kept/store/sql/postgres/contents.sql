-- name: hold_contents
-- The contents that are there already, locked against garbage collection until this transaction ends.
SELECT id, hash FROM contents WHERE hash = ANY(:hashes) ORDER BY hash FOR KEY SHARE;

-- name: unneeded_contents
-- Contents that no version has, from an id on; those that somebody is about to use are passed over.
SELECT c.id FROM contents c
 WHERE c.id > :after AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.content_id = c.id)
 ORDER BY c.id LIMIT :limit
   FOR UPDATE OF c SKIP LOCKED;
