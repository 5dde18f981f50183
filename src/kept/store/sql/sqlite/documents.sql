-- name: living_versions_at
-- What a generation that is being built has, or takes over from its base, at these URLs.
SELECT v.url, v.document_id, v.content_id, v.content_type, v.fetched_at
  FROM json_each(:urls) AS asked
 CROSS JOIN versions v INDEXED BY versions_by_url ON v.url = asked.value
 WHERE v.source_id = :source AND v.died IS NULL
   AND (v.born = :generation
        OR NOT EXISTS (SELECT 1 FROM versions newer
                        WHERE newer.document_id = v.document_id AND newer.born = :generation));
