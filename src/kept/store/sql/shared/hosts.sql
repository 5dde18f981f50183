-- name: host_shares
-- The oldest first: it keeps what it has when others come.
SELECT place_id, at_once, slots FROM host_shares
 WHERE host = :host AND renewed_at > ago(:seconds)
 ORDER BY joined_at, place_id;

-- name: keep_share
-- Touches no row when the worker was reaped.
INSERT INTO host_shares (host, place_id, at_once, slots, joined_at, renewed_at)
SELECT :host, id, :at_once, :slots, now(), now() FROM job_workers WHERE id = :place
ON CONFLICT (host, place_id) DO UPDATE
   SET at_once = excluded.at_once, slots = excluded.slots, renewed_at = excluded.renewed_at;
