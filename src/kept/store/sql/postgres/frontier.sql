-- name: mark_reached
-- An entry that is deferred already may be closer to the root than it seemed, or no longer be deferred. Locked in the
-- order of the URLs, so that two workers cannot wait for each other.
WITH locked AS MATERIALIZED (
    SELECT f.id, r.parent, r.depth, r.family, r.deferred
      FROM unnest(:job::uuid[], :url::text[], :parent::text[], :depth::bigint[], :family::text[], :deferred::boolean[])
           AS r (job, url, parent, depth, family, deferred)
      JOIN frontier f ON f.job_id = r.job AND f.url = r.url
     WHERE NOT f.reached OR (f.deferred AND (f.depth > r.depth OR NOT r.deferred))
     ORDER BY f.url COLLATE "C"
       FOR UPDATE OF f
)
UPDATE frontier f
   SET reached = TRUE, parent_url = COALESCE(f.parent_url, locked.parent), depth = locked.depth,
       family = CASE WHEN locked.deferred THEN locked.family END,
       deferred = locked.deferred AND f.outcome IS NULL AND f.worker_id IS NULL
  FROM locked
 WHERE f.id = locked.id;

-- name: settle_entry
-- Locked in the order of the URLs, so that two workers cannot wait for each other.
WITH locked AS MATERIALIZED (
    SELECT f.id, f.url FROM frontier f
     WHERE f.job_id = ANY (:job::uuid[]) AND f.url = ANY (:url::text[])
     ORDER BY f.url COLLATE "C"
       FOR UPDATE
)
UPDATE frontier f
   SET worker_id = NULL, outcome = r.outcome, reason = r.reason, http_status = r.status, visited_at = now(),
       batch = r.batch, document_id = r.document, by_settings = r.by_settings, redirect_to = r.redirect_to,
       renews = r.renews, etag = r.etag, last_modified = r.last_modified, raw_hash = r.raw_hash,
       signature = r.signature, links = r.links, canonical = r.canonical
  FROM locked
  JOIN unnest(:url::text[], :outcome::text[], :reason::text[], :status::bigint[], :batch::bigint[], :document::uuid[],
              :by_settings::boolean[], :redirect_to::text[], :renews::boolean[], :etag::text[], :last_modified::text[],
              :raw_hash::text[], :signature::text[], :links::bytea[], :canonical::text[])
       AS r (url, outcome, reason, status, batch, document, by_settings, redirect_to, renews, etag, last_modified,
             raw_hash, signature, links, canonical)
    ON r.url = locked.url
 WHERE f.id = locked.id;

-- name: lease_entries
-- Leases entries that are due, in the order they were found. :known: only documents, at their URL or where they moved to.
-- An array, so that the entries are selected once: with IN the planner may run the subquery again for every row, and
-- each time it selects others, more than :limit in all.
UPDATE frontier SET worker_id = :worker
 WHERE id = ANY(ARRAY(SELECT id FROM frontier
                       WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = :reached AND due_at <= now()
                         AND worker_id IS NULL AND (document_id IS NOT NULL OR NOT :known)
                       ORDER BY due_at, id LIMIT :limit
                         FOR UPDATE SKIP LOCKED))
RETURNING id;
