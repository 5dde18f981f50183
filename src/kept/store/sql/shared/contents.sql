-- name: insert_content
-- Contents are inserted in the order of their hashes, so that two workers cannot wait for each other.
INSERT INTO contents (hash, title, markdown, size) VALUES (:hash, :title, :markdown, :size)
ON CONFLICT (hash) DO NOTHING;

-- name: delete_contents
DELETE FROM contents WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id);
