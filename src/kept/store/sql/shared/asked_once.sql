-- name: ask_once
-- Touches no row when the same was asked before. Two who ask at once take turns.
INSERT INTO asked_once (owner, key, request, asked_at) VALUES (:owner, :key, :request, now()) ON CONFLICT DO NOTHING;

-- name: asked_once
SELECT request, job_id FROM asked_once WHERE owner = :owner AND key = :key AND asked_at >= ago(:seconds);

-- name: answer_once
UPDATE asked_once SET job_id = :job WHERE owner = :owner AND key = :key;

-- name: forget_asked_once
DELETE FROM asked_once WHERE asked_at < ago(:seconds);
