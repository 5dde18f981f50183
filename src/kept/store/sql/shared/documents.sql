-- name: document
SELECT * FROM documents WHERE id = :id;

-- name: documents_of_generation
-- A page of the documents that a generation shows, by URL. The page is cut before the joins, in the order of the index: a
-- sort of all that follows, for every page, would make a long list quadratic.
SELECT d.id, d.lifecycle, d.first_seen, v.id AS version_id, v.url, v.content_type, v.fetched_at,
       c.hash AS content_hash, c.title
  FROM (SELECT id, document_id, url, content_id, content_type, fetched_at
          FROM versions {sqlite: INDEXED BY versions_by_url}
         WHERE source_id = :source AND url > :after
           AND born <= :generation AND (died IS NULL OR died > :generation) AND NOT pending
         ORDER BY url
         LIMIT :limit) AS v
  JOIN documents d ON d.id = v.document_id
  JOIN contents c ON c.id = v.content_id
 ORDER BY v.url;

-- name: versions_of_document
-- Its history, oldest first, without versions that no generation has shown yet.
SELECT v.id, v.born, v.died, v.url, v.read_again, v.content_type, v.fetched_at, c.hash AS content_hash, c.title, c.size,
       v.end_reason, g.activated_at, CASE WHEN g.mode IS NULL THEN g.reason END AS rolled_back, ended.activated_at AS ended_at
  FROM versions v
  JOIN contents c ON c.id = v.content_id
  LEFT JOIN generations g ON g.source_id = v.source_id AND g.number = v.born
  LEFT JOIN generations ended ON ended.source_id = v.source_id AND ended.number = v.died
 WHERE v.document_id = :document AND (g.number IS NULL OR g.activated_at IS NOT NULL)
 ORDER BY v.born;

-- name: visible_versions_by_url
-- The documents that are shown at this URL now, in every source.
SELECT id AS document_id, source_id, generation, url FROM documents_active WHERE url = :url;

-- name: past_versions_by_url
-- The documents that were once shown at this URL, the latest first.
SELECT v.document_id, v.source_id, max(v.born) AS born
  FROM versions v
  LEFT JOIN generations g ON g.source_id = v.source_id AND g.number = v.born
  JOIN sources s ON s.id = v.source_id AND s.removed_at IS NULL
 WHERE v.url = :url AND (g.number IS NULL OR g.activated_at IS NOT NULL)
 GROUP BY v.document_id, v.source_id
 ORDER BY max(v.born) DESC;

-- name: documents_by_former_id
-- The documents that had this doc_id in the manifest they were imported from, the latest first.
SELECT d.id, d.source_id FROM documents d
  JOIN sources s ON s.id = d.source_id AND s.removed_at IS NULL
 WHERE d.former_id = :former_id
 ORDER BY d.id DESC;

-- name: held_versions_by_url
-- The documents that held generations have at this URL.
SELECT v.document_id, v.source_id
  FROM versions v
  JOIN generations g ON g.source_id = v.source_id AND g.number = v.born AND g.state = 'held'
  JOIN sources s ON s.id = v.source_id AND s.removed_at IS NULL
 WHERE v.url = :url;

-- name: version_in_generation
-- The version of a document that a generation shows.
SELECT v.id, v.url, v.content_id, v.content_type, v.fetched_at, d.lifecycle, c.title, c.markdown, c.hash AS content_hash,
       COALESCE(d.verified_at, (SELECT max(g.created_at) FROM generations g
                                 WHERE g.source_id = v.source_id AND g.whole AND g.activated_at IS NOT NULL
                                   AND g.number BETWEEN v.born AND :generation), v.fetched_at) AS verified_at
  FROM versions v
  JOIN documents d ON d.id = v.document_id
  JOIN contents c ON c.id = v.content_id
 WHERE v.document_id = :document AND v.born <= :generation AND (v.died IS NULL OR v.died > :generation)
   AND NOT v.pending;

-- name: version_born_in
-- The version that a generation adds to a document, whether or not it is active yet.
SELECT v.id, v.url, v.content_id, v.content_type, v.fetched_at, d.lifecycle, c.title, c.markdown, c.hash AS content_hash,
       v.fetched_at AS verified_at
  FROM versions v
  JOIN documents d ON d.id = v.document_id
  JOIN contents c ON c.id = v.content_id
 WHERE v.document_id = :document AND v.born = :generation;

-- name: differing_versions
-- The versions that exactly one of two generations shows, with the side that shows it, and whether the page itself
-- changed between them. The same bytes, read by another reader, are no change.
SELECT v.document_id, v.url, c.hash AS content_hash,
       EXISTS (SELECT 1 FROM versions other
                WHERE other.document_id = v.document_id AND other.born > :first AND other.born <= :last
                  AND NOT other.pending AND NOT other.read_again) AS news,
       CASE WHEN v.born <= :a AND (v.died IS NULL OR v.died > :a) THEN 'a' ELSE 'b' END AS side
  FROM versions v
  JOIN contents c ON c.id = v.content_id
 WHERE v.source_id = :source AND NOT v.pending
   AND (v.born <= :a AND (v.died IS NULL OR v.died > :a)) <> (v.born <= :b AND (v.died IS NULL OR v.died > :b))
 ORDER BY v.url;

-- name: versions_born_in
SELECT document_id, url, pending, read_again FROM versions
 WHERE source_id = :source AND born = :generation ORDER BY url;

-- name: reassign_version
-- Give the version at a new URL to a document that existed before.
UPDATE versions SET document_id = :document WHERE id = :version;

-- name: delete_version
DELETE FROM versions WHERE id = :id;

-- name: delete_document
DELETE FROM documents WHERE id = :id;

-- name: end_version
-- :reason is why its document is removed, NULL if another version follows.
UPDATE versions SET died = :generation, end_reason = :reason
 WHERE document_id = :document AND died IS NULL AND NOT pending AND born < :generation;

-- name: delete_pending_version
DELETE FROM versions WHERE document_id = :document AND born = :generation AND pending;

-- name: end_replaced_versions
UPDATE versions SET died = :generation
 WHERE died IS NULL AND NOT pending
   AND document_id IN (SELECT document_id FROM versions WHERE source_id = :source AND born = :generation AND pending);

-- name: publish_pending_versions
UPDATE versions SET pending = FALSE WHERE source_id = :source AND born = :generation AND pending;

-- name: apply_metadata_updates
UPDATE versions
   SET etag = f.etag, last_modified = f.last_modified, raw_hash = f.raw_hash, signature = f.signature, links = f.links,
       canonical = f.canonical
  FROM frontier f
 WHERE f.job_id = :job AND f.renews AND versions.id = f.version_id;

-- name: replaced_validators
-- The validators of pages that a generation changed, before and after.
SELECT former.etag AS etag_before, former.last_modified AS last_modified_before, v.etag, v.last_modified
  FROM versions v
  JOIN versions former ON former.document_id = v.document_id AND former.died = v.born AND former.url = v.url
 WHERE v.source_id = :source AND v.born = :generation AND NOT v.read_again
 LIMIT :limit;

-- name: has_validators
-- Whether any of the first :limit pages that are shown has validators; no row: none is shown.
SELECT max(CASE WHEN etag IS NOT NULL OR last_modified IS NOT NULL THEN 1 ELSE 0 END) AS some
  FROM (SELECT etag, last_modified FROM versions
         WHERE source_id = :source AND died IS NULL AND NOT pending LIMIT :limit) AS living;

-- name: set_lifecycle
UPDATE documents
   SET lifecycle = :lifecycle, since = :since, missed_crawls = :missed_crawls, retry_count = :retry_count,
       reason = :reason, verified_at = :verified_at
 WHERE id = :id;

-- name: exceptional_documents
-- Documents that are missing, in error, or have their own time of verification, with their outcome in this crawl.
SELECT d.id, d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.reason, d.verified_at,
       v.id AS version_id, v.url, v.content_id, f.outcome, f.reached
  FROM documents d
  LEFT JOIN versions v ON v.document_id = d.id AND v.died IS NULL AND NOT v.pending
  LEFT JOIN frontier f ON f.job_id = :job AND f.url = v.url
 WHERE d.source_id = :source AND d.lifecycle <> 'deleted' AND (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL);

-- name: has_former_documents
SELECT 1 AS yes FROM documents
 WHERE source_id = :source AND lifecycle IN ('missing', 'deleted') AND (lifecycle <> 'active' OR verified_at IS NOT NULL)
 LIMIT 1;

-- name: new_matching_former_documents
-- The new documents of a generation, each with every missing or deleted document that last had the same content or URL.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.content_id, c.size,
       d.id AS former_id, d.lifecycle AS former_lifecycle, former.url AS former_url,
       former.content_id AS former_content_id, former.born AS former_born
  FROM versions v
  JOIN documents newborn ON newborn.id = v.document_id AND newborn.first_generation = :generation
  JOIN contents c ON c.id = v.content_id
  JOIN versions former ON former.content_id = v.content_id AND former.source_id = :source
  JOIN documents d ON d.id = former.document_id AND d.lifecycle IN ('missing', 'deleted')
 WHERE v.source_id = :source AND v.born = :generation AND former.died IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM versions newer WHERE newer.document_id = d.id AND newer.born > former.born)
UNION
SELECT v.id, v.document_id, v.url, v.depth, v.content_id, c.size, d.id, d.lifecycle, former.url, former.content_id, former.born
  FROM versions v
  JOIN documents newborn ON newborn.id = v.document_id AND newborn.first_generation = :generation
  JOIN contents c ON c.id = v.content_id
  JOIN versions former ON former.url = v.url AND former.source_id = :source
  JOIN documents d ON d.id = former.document_id AND d.lifecycle IN ('missing', 'deleted')
 WHERE v.source_id = :source AND v.born = :generation AND former.died IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM versions newer WHERE newer.document_id = d.id AND newer.born > former.born);

-- name: new_document_by_url
-- The new document of a generation at this URL.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.content_id, c.size
  FROM versions v
  JOIN documents newborn ON newborn.id = v.document_id AND newborn.first_generation = :generation
  JOIN contents c ON c.id = v.content_id
 WHERE v.source_id = :source AND v.born = :generation AND v.url = :url;

-- name: new_documents
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.content_id, c.size
  FROM versions v
  JOIN documents newborn ON newborn.id = v.document_id AND newborn.first_generation = :generation
  JOIN contents c ON c.id = v.content_id
 WHERE v.source_id = :source AND v.born = :generation;

-- name: new_documents_with_content
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.content_id, c.size
  FROM versions v
  JOIN documents newborn ON newborn.id = v.document_id AND newborn.first_generation = :generation
  JOIN contents c ON c.id = v.content_id
 WHERE v.content_id = :content AND v.source_id = :source AND v.born = :generation;

-- name: end_versions_since
UPDATE versions SET died = :number
 WHERE source_id = :source AND died IS NULL AND born > :target AND born < :number;

-- name: restore_versions
INSERT INTO versions (source_id, document_id, born, url, content_id, content_type, etag, last_modified, raw_hash,
                      signature, depth, links, canonical, fetched_at)
SELECT source_id, document_id, :number, url, content_id, content_type, etag, last_modified, raw_hash,
       signature, depth, links, canonical, fetched_at
  FROM versions
 WHERE source_id = :source AND born <= :target AND died > :target;

-- name: set_rollback_reason
-- The documents that a rollback removed.
UPDATE versions SET end_reason = :reason
 WHERE source_id = :source AND died = :number
   AND NOT EXISTS (SELECT 1 FROM versions next
                    WHERE next.document_id = versions.document_id AND next.born = :number {postgres: OFFSET 0});

-- name: show_rolled_back_documents
UPDATE documents
   SET lifecycle = 'active', since = NULL, missed_crawls = 0, retry_count = 0, reason = NULL
 WHERE source_id = :source AND lifecycle <> 'active'
   AND EXISTS (SELECT 1 FROM versions v WHERE v.document_id = documents.id AND v.died IS NULL);

-- name: hide_rolled_back_documents
UPDATE documents
   SET lifecycle = 'deleted', since = now(), missed_crawls = 0, retry_count = 0, reason = :reason, verified_at = NULL
 WHERE source_id = :source AND lifecycle <> 'deleted'
   AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document_id = documents.id AND v.died IS NULL);

-- name: delete_versions_of_generation
DELETE FROM versions
 WHERE id IN (SELECT id FROM versions WHERE source_id = :source AND born = :generation LIMIT :limit);

-- name: delete_documents_of_generation
DELETE FROM documents
 WHERE id IN (SELECT id FROM documents WHERE source_id = :source AND first_generation = :generation LIMIT :limit);

-- name: delete_versions_of_source
DELETE FROM versions WHERE id IN (SELECT id FROM versions WHERE source_id = :source LIMIT :limit);

-- name: delete_documents_of_source
DELETE FROM documents WHERE id IN (SELECT id FROM documents WHERE source_id = :source LIMIT :limit);

-- name: delete_dead_versions
-- Versions that no retained generation shows, but for the newest of a missing document.
DELETE FROM versions
 WHERE id IN (SELECT v.id FROM versions v
                JOIN documents d ON d.id = v.document_id
               WHERE v.source_id = :source AND v.died <= :oldest
                 AND (d.lifecycle <> 'missing'
                      OR EXISTS (SELECT 1 FROM versions newer
                                  WHERE newer.document_id = d.id AND newer.born > v.born AND NOT newer.pending))
               LIMIT :limit);

-- name: delete_orphaned_documents
-- Deleted documents that have no version left.
DELETE FROM documents
 WHERE id IN (SELECT d.id FROM documents d
               WHERE d.source_id = :source AND d.lifecycle = 'deleted' AND (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL)
                 AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document_id = d.id {postgres: OFFSET 0})
               LIMIT :limit);

-- name: document_ids_by_url
-- The documents that a generation shows at these URLs.
SELECT v.url, v.document_id
  FROM {each :urls as text}
  JOIN versions v {sqlite: INDEXED BY versions_by_url} ON v.url = item.value
 WHERE v.source_id = :source AND v.born <= :generation AND (v.died IS NULL OR v.died > :generation) AND NOT v.pending;

-- name: insert_document
WITH {rows id uuid, source uuid, generation bigint}
INSERT INTO documents (id, source_id, first_seen, first_generation)
SELECT new.id, new.source, now(), new.generation FROM new;

-- name: insert_version
WITH {rows source uuid, document uuid, born bigint, pending boolean, read_again boolean, url text, content bigint,
      content_type text, etag text, last_modified text, raw_hash text, signature text, depth bigint, links bytea,
      canonical text}
INSERT INTO versions (source_id, document_id, born, pending, read_again, url, content_id, content_type, etag,
                      last_modified, raw_hash, signature, depth, links, canonical, fetched_at)
SELECT new.source, new.document, new.born, new.pending, new.read_again, new.url, new.content, new.content_type, new.etag,
       new.last_modified, new.raw_hash, new.signature, new.depth, new.links, new.canonical, now()
  FROM new;

-- name: upcoming_versions_by_url
-- What a generation that is being built has, or takes over from its base, at these URLs.
SELECT v.url, v.document_id, v.content_id, v.content_type, v.fetched_at
  FROM {each :urls as text}
  JOIN versions v {sqlite: INDEXED BY versions_by_url} ON v.url = item.value
 WHERE v.source_id = :source AND v.died IS NULL
   AND (v.born = :generation
        OR NOT EXISTS (SELECT 1 FROM versions newer
                        WHERE newer.document_id = v.document_id AND newer.born = :generation));
