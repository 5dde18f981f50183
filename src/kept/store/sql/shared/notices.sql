-- name: insert_notice
INSERT INTO notifications (id, source_id, receiver, event, payload, created_at, due_at)
VALUES (:id, :source, :receiver, :event, :payload, now(), now());

-- name: due_notices
SELECT * FROM notifications WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit;

-- name: put_off_notice
-- No :due: it is given up. Touches no row if another process tries it by now.
UPDATE notifications SET due_at = :due, error = :error WHERE id = :id AND attempts = :attempts;

-- name: delete_notice
DELETE FROM notifications WHERE id = :id;

-- name: given_up_notice
-- The latest that nobody could be told.
SELECT * FROM notifications WHERE source_id = :source AND due_at IS NULL ORDER BY created_at DESC LIMIT 1;

-- name: delete_given_up_notices
DELETE FROM notifications WHERE due_at IS NULL AND created_at < :before;
