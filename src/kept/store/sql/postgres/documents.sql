-- name: insert_document
INSERT INTO documents (id, source_id, first_seen, first_generation)
SELECT r.id, r.source, now(), r.generation
  FROM unnest(:id::uuid[], :source::uuid[], :generation::bigint[]) AS r (id, source, generation);

-- name: insert_version
INSERT INTO versions (source_id, document_id, born, pending, read_again, url, content_id, content_type, etag,
                      last_modified, raw_hash, signature, depth, links, canonical, fetched_at)
SELECT r.source, r.document, r.born, r.pending, r.read_again, r.url, r.content, r.content_type, r.etag,
       r.last_modified, r.raw_hash, r.signature, r.depth, r.links, r.canonical, now()
  FROM unnest(:source::uuid[], :document::uuid[], :born::bigint[], :pending::boolean[], :read_again::boolean[],
              :url::text[], :content::bigint[], :content_type::text[], :etag::text[], :last_modified::text[],
              :raw_hash::text[], :signature::text[], :depth::bigint[], :links::bytea[], :canonical::text[])
       AS r (source, document, born, pending, read_again, url, content, content_type, etag,
             last_modified, raw_hash, signature, depth, links, canonical);

-- name: living_versions_at
-- What a generation that is being built has, or takes over from its base, at these URLs.
SELECT v.url, v.document_id, v.content_id, v.content_type, v.fetched_at
  FROM versions v
 WHERE v.source_id = :source AND v.url = ANY(:urls) AND v.died IS NULL
   AND (v.born = :generation
        OR NOT EXISTS (SELECT 1 FROM versions newer
                        WHERE newer.document_id = v.document_id AND newer.born = :generation));
