-- name: exported_generations
-- The generations that can be searched and read.
SELECT * FROM generations WHERE source_id = :source AND state IN ('active', 'retired') ORDER BY number;

-- name: exported_documents
-- Every document that a generation up to :active has shown, after an id; with the time it was last seen.
SELECT d.id, d.former_id, d.first_seen, d.first_generation, d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.reason, d.verified_at,
       COALESCE(d.verified_at, (SELECT max(g.created_at) FROM generations g
                                 WHERE g.source_id = d.source_id AND g.whole AND g.activated_at IS NOT NULL
                                   AND g.number >= newest.born AND (newest.died IS NULL OR g.number < newest.died)),
                newest.fetched_at) AS last_seen
  FROM documents d
  JOIN versions newest ON newest.document_id = d.id AND newest.born <= :active AND NOT newest.pending
                      AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document_id = d.id AND v.born > newest.born
                                         AND v.born <= :active AND NOT v.pending)
 WHERE d.source_id = :source AND d.id > :after
 ORDER BY d.id
 LIMIT :limit;

-- name: exported_versions
-- The versions of these documents, oldest first.
SELECT v.document_id, v.born, v.died, v.read_again, v.url, v.content_id, v.content_type, v.etag, v.last_modified,
       v.raw_hash, v.signature, v.depth, v.links, v.canonical, v.fetched_at, c.hash AS content_hash, c.title
  FROM versions v
  JOIN contents c ON c.id = v.content_id
 WHERE v.source_id = :source AND v.document_id >= :first AND v.document_id <= :last AND v.born <= :active AND NOT v.pending
 ORDER BY v.document_id, v.born;

-- name: insert_imported_source
INSERT INTO sources (id, name, version, kind, root, settings, authority, next_generation, created_at)
VALUES (:id, :name, :version, :kind, :root, :settings, :authority, :next, :created_at);

-- name: insert_imported_generation
INSERT INTO generations (source_id, number, base, state, settings, mode, whole, changed, documents, tally, partial,
                         reason, created_at, activated_at)
VALUES (:source, :number, :base, :state, :settings, :mode, :whole, :changed, :documents, :tally, :partial,
        :reason, :created_at, :activated_at);

-- name: insert_imported_document
INSERT INTO documents (id, former_id, source_id, first_seen, first_generation, lifecycle, since, missed_crawls, retry_count,
                       reason, verified_at)
VALUES (:id, :former_id, :source, :first_seen, :first_generation, :lifecycle, :since, :missed_crawls, :retry_count,
        :reason, :verified_at);

-- name: insert_imported_version
INSERT INTO versions (source_id, document_id, born, died, read_again, url, content_id, content_type, etag, last_modified,
                      raw_hash, signature, depth, links, canonical, fetched_at)
VALUES (:source, :document, :born, :died, :read_again, :url, :content, :content_type, :etag, :last_modified,
        :raw_hash, :signature, :depth, :links, :canonical, :fetched_at);

-- name: count_imported_documents
UPDATE generations
   SET documents = (SELECT count(*) FROM versions v
                     WHERE v.source_id = :source AND v.born <= :generation AND (v.died IS NULL OR v.died > :generation))
 WHERE source_id = :source AND number = :generation;
