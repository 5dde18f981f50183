-- name: insert_document
WITH new (id, source, generation) AS (VALUES (:id, :source, :generation))
INSERT INTO documents (id, source_id, first_seen, first_generation) SELECT id, source, now(), generation FROM new;

-- name: insert_version
-- The clock is asked once for many rows; among the VALUES it would be asked for each.
WITH new (source, document, born, pending, read_again, url, content, content_type, etag, last_modified, raw_hash, signature,
          depth, links, canonical) AS (
    VALUES (:source, :document, :born, :pending, :read_again, :url, :content, :content_type, :etag, :last_modified, :raw_hash,
            :signature, :depth, :links, :canonical)
)
INSERT INTO versions (source_id, document_id, born, pending, read_again, url, content_id, content_type, etag,
                      last_modified, raw_hash, signature, depth, links, canonical, fetched_at)
SELECT source, document, born, pending, read_again, url, content, content_type, etag, last_modified, raw_hash, signature, depth,
       links, canonical, now()
  FROM new;

-- name: living_versions_at
-- What a generation that is being built has, or takes over from its base, at these URLs.
SELECT v.url, v.document_id, v.content_id, v.content_type, v.fetched_at
  FROM json_each(:urls) AS asked
 CROSS JOIN versions v INDEXED BY versions_by_url ON v.url = asked.value
 WHERE v.source_id = :source AND v.died IS NULL
   AND (v.born = :generation
        OR NOT EXISTS (SELECT 1 FROM versions newer
                        WHERE newer.document_id = v.document_id AND newer.born = :generation));
