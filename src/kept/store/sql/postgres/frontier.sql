-- name: insert_entry
-- :document: where it moved to by a redirect; no limit keeps that out. Only a repair or a quick crawl can be led to a
-- document that it did not begin with; a quick one visits it if that is :wanted. In the order of the URLs, so that two workers cannot wait for each other.
INSERT INTO frontier (job_id, url, depth, parent_url, reached, version_id, document_id, due_at)
SELECT j.id, r.url, r.depth, r.parent, r.reached, v.id, COALESCE(v.document_id, r.document), now()
  FROM unnest(:job::uuid[], :url::text[], :depth::bigint[], :parent::text[], :document::uuid[], :reached::boolean[],
              :wanted::boolean[])
       AS r (job, url, depth, parent, document, reached, wanted)
  JOIN crawl_jobs j ON j.id = r.job
  LEFT JOIN versions v ON j.mode IN ('failed', 'quick') AND v.source_id = j.source_id AND v.url = r.url
                      AND v.died IS NULL AND NOT v.pending
 WHERE j.mode <> 'quick' OR v.id IS NULL OR r.wanted
 ORDER BY r.url COLLATE "C"
ON CONFLICT (job_id, url) DO NOTHING;

-- name: insert_listed_entry
-- What an origin that lists everything names. An outcome: its validators are those we hold, so there is nothing to visit.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at, outcome, reason, by_settings,
                      redirect_to, visited_at, batch)
SELECT r.job, r.url, r.depth, TRUE, r.version, r.document, now(), r.outcome, r.reason, r.by_settings, r.redirect_to,
       CASE WHEN r.outcome IS NULL THEN NULL ELSE now() END, r.batch
  FROM unnest(:job::uuid[], :url::text[], :depth::bigint[], :version::bigint[], :document::uuid[], :outcome::text[],
              :reason::text[], :by_settings::boolean[], :redirect_to::text[], :batch::bigint[])
       AS r (job, url, depth, version, document, outcome, reason, by_settings, redirect_to, batch)
 ORDER BY r.url COLLATE "C"
ON CONFLICT (job_id, url) DO NOTHING;

-- name: reach_entry
-- Locked in the order of the URLs, so that two workers cannot wait for each other.
WITH locked AS MATERIALIZED (
    SELECT f.id, r.parent
      FROM unnest(:job::uuid[], :url::text[], :parent::text[]) AS r (job, url, parent)
      JOIN frontier f ON f.job_id = r.job AND f.url = r.url
     WHERE NOT f.reached
     ORDER BY f.url COLLATE "C"
       FOR UPDATE OF f
)
UPDATE frontier f SET reached = TRUE, parent_url = COALESCE(f.parent_url, locked.parent)
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
-- Takes entries that are due, in the order they were found. :known: only documents, where they are or moved to.
-- As an array, the entries are looked for once. With IN the planner may look for them again for every row, and each
-- time it finds others: more than :limit.
UPDATE frontier SET worker_id = :worker
 WHERE id = ANY(ARRAY(SELECT id FROM frontier
                       WHERE job_id = :job AND outcome IS NULL AND reached = :reached AND due_at <= now()
                         AND worker_id IS NULL AND (document_id IS NOT NULL OR NOT :known)
                       ORDER BY due_at, id LIMIT :limit
                         FOR UPDATE SKIP LOCKED))
RETURNING id;

-- name: entries_by_id
SELECT f.url, f.depth, f.attempts, f.reached, v.id AS version_id, v.document_id, v.born, v.url AS held_url,
       v.content_type, v.etag, v.last_modified, v.raw_hash, v.signature, v.depth AS held_depth, v.links, v.canonical,
       v.fetched_at, c.hash AS content_hash
  FROM frontier f
  LEFT JOIN versions v ON v.id = f.version_id
  LEFT JOIN contents c ON c.id = v.content_id
 WHERE f.id = ANY(:ids)
 ORDER BY f.due_at, f.id;

-- name: skip_new_entries
-- A limit was reached: what is not known yet stays out, and was never visited. What another worker touches at this
-- moment is left for the next time: it may wait for the job, which is locked here.
UPDATE frontier SET outcome = 'skipped', reason = :reason, by_settings = TRUE, batch = :batch
 WHERE id = ANY(ARRAY(SELECT id FROM frontier
                       WHERE job_id = :job AND outcome IS NULL AND worker_id IS NULL AND document_id IS NULL
                         FOR UPDATE SKIP LOCKED));

-- name: renumber_entries
UPDATE frontier SET batch = :batch WHERE job_id = :job AND url = ANY(:urls);

-- name: held_versions
-- These versions, as far as the list of a crawl needs them; and whether activation asks for their entries, changed or not.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.etag, v.last_modified, v.signature,
       (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL OR v.canonical IS NOT NULL) AS needs_entry
  FROM versions v
  JOIN documents d ON d.id = v.document_id
 WHERE v.id = ANY(:ids);

-- name: lacks_entries
-- A row if one of these URLs is not in the frontier.
SELECT 1 AS lacks FROM unnest(CAST(:urls AS text[])) AS asked (url)
 WHERE NOT EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = :job AND f.url = asked.url)
 LIMIT 1;
