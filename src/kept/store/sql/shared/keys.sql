-- name: insert_key
-- No row: the name is taken.
INSERT INTO keys (name, hash, scope, created_at) VALUES (:name, :hash, :scope, now())
ON CONFLICT DO NOTHING RETURNING name, scope, created_at;

-- name: keys
SELECT name, scope, created_at FROM keys ORDER BY name;

-- name: key_by_hash
SELECT name, scope, created_at FROM keys WHERE hash = :hash;

-- name: delete_key
DELETE FROM keys WHERE name = :name;

-- name: key_usage
-- How many crawls of a key are live, how many sources it added, how many pages these show.
SELECT (SELECT count(*) FROM crawl_jobs WHERE user_id = :owner AND status IN ('pending', 'processing', 'paused')) AS live_jobs,
       (SELECT count(*) FROM sources WHERE owner = :owner AND removed_at IS NULL) AS sources,
       (SELECT COALESCE(sum(g.documents), 0) FROM sources s
          JOIN generations g ON g.source_id = s.id AND g.number = s.active_generation
         WHERE s.owner = :owner AND s.removed_at IS NULL) AS pages;

-- name: assign_source_owner
UPDATE sources SET owner = :owner WHERE id = :id AND owner IS NULL;

-- name: insert_idempotency_key
-- Changes no row if the key was used before. Of two requests at the same time the second waits for the first.
INSERT INTO idempotency_keys (owner, key, request, created_at) VALUES (:owner, :key, :request, now()) ON CONFLICT DO NOTHING;

-- name: idempotency_key
SELECT request, job_id FROM idempotency_keys WHERE owner = :owner AND key = :key AND created_at >= ago(:seconds);

-- name: set_idempotency_job
UPDATE idempotency_keys SET job_id = :job WHERE owner = :owner AND key = :key;

-- name: delete_expired_idempotency_keys
DELETE FROM idempotency_keys WHERE created_at < ago(:seconds);
