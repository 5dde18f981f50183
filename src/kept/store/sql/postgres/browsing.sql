-- name: documents_at_urls
-- The documents that a generation shows at these URLs.
SELECT v.url, v.document_id
  FROM versions v
 WHERE v.source_id = :source AND v.url = ANY(:urls)
   AND v.born <= :generation AND (v.died IS NULL OR v.died > :generation) AND NOT v.pending;
