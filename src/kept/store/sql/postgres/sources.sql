-- name: lock_source
SELECT * FROM sources WHERE id = :id AND removed_at IS NULL FOR NO KEY UPDATE;

-- name: lock_hidden_source
SELECT id FROM sources WHERE id = :id AND removed_at IS NOT NULL FOR UPDATE;
