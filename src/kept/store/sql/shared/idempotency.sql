-- name: insert_idempotency_key
-- Changes no row if the key was used before. Of two requests at the same time the second waits for the first.
INSERT INTO idempotency_keys (owner, key, request, created_at) VALUES (:owner, :key, :request, now()) ON CONFLICT DO NOTHING;

-- name: idempotency_key
SELECT request, job_id FROM idempotency_keys WHERE owner = :owner AND key = :key AND created_at >= ago(:seconds);

-- name: set_idempotency_job
UPDATE idempotency_keys SET job_id = :job WHERE owner = :owner AND key = :key;

-- name: delete_expired_idempotency_keys
DELETE FROM idempotency_keys WHERE created_at < ago(:seconds);
