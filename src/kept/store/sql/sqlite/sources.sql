-- name: lock_source
-- A transaction that writes is alone already.
SELECT * FROM sources WHERE id = :id AND removed_at IS NULL;
