-- name: insert_document
INSERT INTO documents (id, source_id, first_seen, first_generation)
SELECT r.id, r.source, now(), r.generation
  FROM unnest(:id::uuid[], :source::uuid[], :generation::bigint[]) AS r (id, source, generation);

-- name: insert_version
INSERT INTO versions (source_id, document_id, born, pending, read_again, url, content_id, content_type, etag,
                      last_modified, raw_hash, signature, depth, links, fetched_at)
SELECT r.source, r.document, r.born, r.pending, r.read_again, r.url, r.content, r.content_type, r.etag,
       r.last_modified, r.raw_hash, r.signature, r.depth, r.links, now()
  FROM unnest(:source::uuid[], :document::uuid[], :born::bigint[], :pending::boolean[], :read_again::boolean[],
              :url::text[], :content::bigint[], :content_type::text[], :etag::text[], :last_modified::text[],
              :raw_hash::text[], :signature::text[], :depth::bigint[], :links::bytea[])
       AS r (source, document, born, pending, read_again, url, content, content_type, etag,
             last_modified, raw_hash, signature, depth, links);
