-- name: lock_source
SELECT * FROM sources WHERE id = :id AND removed_at IS NULL FOR NO KEY UPDATE;
