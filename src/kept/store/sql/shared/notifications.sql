-- name: insert_notification
INSERT INTO notifications (id, source_id, receiver, event, payload, created_at, due_at)
VALUES (:id, :source, :receiver, :event, :payload, now(), now());

-- name: due_notifications
SELECT * FROM notifications WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit;

-- name: reschedule_notification
-- :due NULL: given up. Changes no row if another process has claimed it meanwhile.
UPDATE notifications SET due_at = :due, error = :error WHERE id = :id AND attempts = :attempts;

-- name: delete_notification
DELETE FROM notifications WHERE id = :id;

-- name: latest_undelivered_notification
-- The latest that could not be delivered.
SELECT * FROM notifications WHERE source_id = :source AND due_at IS NULL ORDER BY created_at DESC LIMIT 1;

-- name: delete_undelivered_notifications
DELETE FROM notifications WHERE due_at IS NULL AND created_at < :before;

-- name: claim_notifications
-- The first that are due: no other process tries them before :until, and those that one claims right now are left out.
WITH due AS MATERIALIZED (
    SELECT id AS due_id FROM notifications WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit {for update skip locked}
)
UPDATE notifications SET attempts = attempts + 1, due_at = :until
  FROM due WHERE id = due.due_id
RETURNING id, source_id, receiver, event, payload, attempts, created_at, due_at, error;
