-- name: take_notices
-- The first that are due: nobody else tries them before :until. What another process takes at this moment is not waited for.
WITH due AS MATERIALIZED (
    SELECT id FROM notices WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit FOR UPDATE SKIP LOCKED
)
UPDATE notices SET attempts = attempts + 1, due_at = :until FROM due WHERE notices.id = due.id RETURNING notices.*;
