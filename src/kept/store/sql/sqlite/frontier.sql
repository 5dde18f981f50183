-- name: lease_entries
-- Takes entries that are due, in the order they were found. :known: only documents, where they are or moved to.
-- Nothing is put off for an hour: what seems to be was written before this machine's clock was set back.
UPDATE frontier SET worker_id = :worker
 WHERE id IN (SELECT id FROM frontier
               WHERE job_id = :job AND outcome IS NULL AND reached = :reached AND worker_id IS NULL
                 AND (due_at <= now() OR due_at > ago(-3600)) AND (document_id IS NOT NULL OR NOT :known)
               ORDER BY due_at, id LIMIT :limit)
RETURNING id;

-- name: entries_by_id
SELECT f.url, f.depth, f.attempts, f.reached, v.id AS version_id, v.document_id, v.born, v.url AS held_url,
       v.content_type, v.etag, v.last_modified, v.raw_hash, v.signature, v.depth AS held_depth, v.links, v.canonical,
       v.fetched_at, c.hash AS content_hash
  FROM frontier f
  LEFT JOIN versions v ON v.id = f.version_id
  LEFT JOIN contents c ON c.id = v.content_id
 WHERE f.id IN (SELECT value FROM json_each(:ids))
 ORDER BY f.due_at, f.id;

-- name: skip_new_entries
-- A limit was reached: what is not known yet stays out, and was never visited.
UPDATE frontier SET outcome = 'skipped', reason = :reason, by_settings = TRUE, batch = :batch
 WHERE job_id = :job AND outcome IS NULL AND worker_id IS NULL AND document_id IS NULL;

-- name: renumber_entries
UPDATE frontier SET batch = :batch WHERE job_id = :job AND url IN (SELECT value FROM json_each(:urls));

-- name: held_versions
-- These versions, as far as the list of a crawl needs them; and whether activation asks for their entries, changed or not.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.etag, v.last_modified, v.signature,
       (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL OR v.canonical IS NOT NULL) AS needs_entry
  FROM versions v
  JOIN documents d ON d.id = v.document_id
 WHERE v.id IN (SELECT value FROM json_each(:ids));

-- name: insert_entry
-- document: where it moved to by a redirect; no limit keeps that out. Only a repair or a quick crawl can be led to a
-- document that it did not begin with; a quick one visits it if that is wanted.
WITH found (job, url, depth, parent, document, reached, wanted) AS (
    VALUES (:job, :url, :depth, :parent, :document, :reached, :wanted)
)
INSERT INTO frontier (job_id, url, depth, parent_url, reached, version_id, document_id, due_at)
SELECT f.job, f.url, f.depth, f.parent, f.reached, v.id, COALESCE(v.document_id, f.document), now()
  FROM found f
 CROSS JOIN crawl_jobs j ON j.id = f.job
  LEFT JOIN versions v ON j.mode IN ('failed', 'quick') AND v.source_id = j.source_id AND v.url = f.url
                      AND v.died IS NULL AND NOT v.pending
 WHERE j.mode <> 'quick' OR v.id IS NULL OR f.wanted
ON CONFLICT (job_id, url) DO NOTHING;

-- name: reach_entry
WITH found (job, url, parent) AS (VALUES (:job, :url, :parent))
UPDATE frontier SET reached = TRUE, parent_url = COALESCE(parent_url, found.parent)
  FROM found WHERE job_id = found.job AND frontier.url = found.url AND NOT reached;

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

-- name: lacks_entries
-- A row if one of these URLs is not in the frontier.
SELECT 1 AS lacks FROM json_each(:urls) AS asked
 WHERE NOT EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = :job AND f.url = asked.value)
 LIMIT 1;
