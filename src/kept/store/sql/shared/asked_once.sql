-- name: ask_once
-- Touches no row when the same was asked before. Two who ask at once take turns.
INSERT INTO idempotency_keys (owner, key, request, created_at) VALUES (:owner, :key, :request, now()) ON CONFLICT DO NOTHING;

-- name: asked_once
SELECT request, job_id FROM idempotency_keys WHERE owner = :owner AND key = :key AND created_at >= ago(:seconds);

-- name: answer_once
UPDATE idempotency_keys SET job_id = :job WHERE owner = :owner AND key = :key;

-- name: forget_asked_once
DELETE FROM idempotency_keys WHERE created_at < ago(:seconds);
