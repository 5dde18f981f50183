-- name: host_shares
-- The oldest first: it keeps its slots when others join.
SELECT lease_id, concurrency, slots FROM host_shares
 WHERE host = :host AND renewed_at > ago(:seconds)
 ORDER BY joined_at, lease_id;

-- name: upsert_host_share
-- Changes no row when the worker was reaped.
INSERT INTO host_shares (host, lease_id, concurrency, slots, joined_at, renewed_at)
SELECT :host, id, :concurrency, :slots, now(), now() FROM job_workers WHERE id = :lease
ON CONFLICT (host, lease_id) DO UPDATE
   SET concurrency = excluded.concurrency, slots = excluded.slots, renewed_at = excluded.renewed_at;
