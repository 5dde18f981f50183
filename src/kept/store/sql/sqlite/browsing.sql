-- name: documents_at_urls
-- The documents that a generation shows at these URLs.
SELECT v.url, v.document_id
  FROM json_each(:urls) AS asked
 CROSS JOIN versions v INDEXED BY versions_by_url ON v.url = asked.value
 WHERE v.source_id = :source AND v.born <= :generation AND (v.died IS NULL OR v.died > :generation) AND NOT v.pending;
