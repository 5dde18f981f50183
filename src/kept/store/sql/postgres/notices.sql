-- name: take_notices
-- The first that are due: nobody else tries them before :until. What another process takes at this moment is not waited for.
WITH due AS MATERIALIZED (
    SELECT id FROM notifications WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
)
UPDATE notifications SET attempts = attempts + 1, due_at = :until FROM due WHERE notifications.id = due.id RETURNING notifications.*;
