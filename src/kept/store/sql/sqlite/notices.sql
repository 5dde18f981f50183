-- name: take_notices
-- The first that are due: nobody else tries them before :until.
UPDATE notifications SET attempts = attempts + 1, due_at = :until
 WHERE id IN (SELECT id FROM notifications WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit)
RETURNING *;
