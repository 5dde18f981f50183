-- name: hold_contents
-- The contents that are there already. While this transaction writes, nobody can take them away.
SELECT id, hash FROM contents WHERE hash IN (SELECT value FROM json_each(:hashes));

-- name: lock_contents
-- A transaction that writes is alone already.
SELECT id FROM contents WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;
