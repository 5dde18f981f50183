-- name: lock_source
-- A transaction that writes is alone already.
SELECT * FROM sources WHERE id = :id AND removed_at IS NULL;

-- name: lock_hidden_source
SELECT id FROM sources WHERE id = :id AND removed_at IS NOT NULL;
