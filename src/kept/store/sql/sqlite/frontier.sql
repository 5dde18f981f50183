-- name: lease_entries
-- Leases entries that are due, in the order they were found. :known: only documents, at their URL or where they moved to.
-- No retry is an hour away: an entry that seems to be was written before this machine's clock was set back.
UPDATE frontier SET worker_id = :worker
 WHERE id IN (SELECT id FROM frontier
               WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = :reached AND worker_id IS NULL
                 AND (due_at <= now() OR due_at > ago(-3600)) AND (document_id IS NOT NULL OR NOT :known)
               ORDER BY due_at, id LIMIT :limit)
RETURNING id;

-- name: mark_reached
-- An entry that is deferred already may be closer to the root than it seemed, or no longer be deferred.
WITH found (job, url, parent, depth, family, deferred) AS (VALUES (:job, :url, :parent, :depth, :family, :deferred))
UPDATE frontier
   SET reached = TRUE, parent_url = COALESCE(parent_url, found.parent), depth = found.depth,
       family = CASE WHEN found.deferred THEN found.family END,
       deferred = found.deferred AND outcome IS NULL AND worker_id IS NULL
  FROM found
 WHERE job_id = found.job AND frontier.url = found.url
   AND (NOT reached OR (frontier.deferred AND (frontier.depth > found.depth OR NOT found.deferred)));

-- name: settle_entry
WITH done (job, url, outcome, reason, status, batch, document, by_settings, redirect_to, renews, etag, last_modified,
           raw_hash, signature, links, canonical) AS (
    VALUES (:job, :url, :outcome, :reason, :status, :batch, :document, :by_settings, :redirect_to, :renews, :etag,
            :last_modified, :raw_hash, :signature, :links, :canonical)
)
UPDATE frontier
   SET worker_id = NULL, outcome = done.outcome, reason = done.reason, http_status = done.status, visited_at = now(),
       batch = done.batch, document_id = done.document, by_settings = done.by_settings,
       redirect_to = done.redirect_to, renews = done.renews, etag = done.etag, last_modified = done.last_modified,
       raw_hash = done.raw_hash, signature = done.signature, links = done.links, canonical = done.canonical
  FROM done WHERE job_id = done.job AND frontier.url = done.url;
