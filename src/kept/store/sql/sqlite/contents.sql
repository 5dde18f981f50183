-- name: hold_contents
-- The contents that are there already. While this transaction writes, nobody can take them away.
SELECT id, hash FROM contents WHERE hash IN (SELECT value FROM json_each(:hashes));

-- name: unneeded_contents
-- Contents that no version has, from an id on.
SELECT c.id FROM contents c
 WHERE c.id > :after AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.content_id = c.id)
 ORDER BY c.id LIMIT :limit;
