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
       v.content_type, v.etag, v.last_modified, v.raw_hash, v.signature, v.depth AS held_depth, v.links, v.fetched_at,
       c.hash AS content_hash
  FROM frontier f
  LEFT JOIN versions v ON v.id = f.version_id
  LEFT JOIN contents c ON c.id = v.content_id
 WHERE f.id = ANY(:ids)
 ORDER BY f.due_at, f.id;
