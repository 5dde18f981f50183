-- name: versions_without_content
SELECT v.id, v.url AS what FROM versions v
 WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.id = v.content_id)
    OR NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = v.document_id)
 ORDER BY v.id LIMIT :limit;

-- name: sections_without_content
SELECT s.id, s.heading AS what FROM sections s
 WHERE NOT EXISTS (SELECT 1 FROM contents c WHERE c.id = s.content_id)
 ORDER BY s.id LIMIT :limit;

-- name: wrong_active_generations
-- A source names its one active generation, and every active generation is named by its source.
SELECT s.id, s.name AS what FROM sources s
 WHERE s.removed_at IS NULL
   AND (SELECT count(*) FROM generations g
         WHERE g.source_id = s.id AND g.state = 'active' AND g.number = s.active_generation)
       <> CASE WHEN s.active_generation IS NULL AND NOT EXISTS (SELECT 1 FROM generations g
                                                                 WHERE g.source_id = s.id AND g.state = 'active')
               THEN 0 ELSE 1 END
 ORDER BY s.name LIMIT :limit;

-- name: wrong_document_counts
-- An active generation counts the documents that it shows.
SELECT s.id, s.name AS what FROM sources s
  JOIN generations g ON g.source_id = s.id AND g.number = s.active_generation
 WHERE s.removed_at IS NULL AND g.documents <> (SELECT count(*) FROM documents_active a WHERE a.source_id = s.id)
 ORDER BY s.name LIMIT :limit;

-- name: wrong_lifecycles
-- Active documents are visible; deleted ones are not.
SELECT d.id, COALESCE(d.reason, d.lifecycle) AS what FROM documents d
  JOIN sources s ON s.id = d.source_id AND s.removed_at IS NULL AND d.first_generation <= s.active_generation
 WHERE d.lifecycle IN ('active', 'deleted')
   AND EXISTS (SELECT 1 FROM versions v WHERE v.document_id = d.id AND v.born <= s.active_generation
                  AND (v.died IS NULL OR v.died > s.active_generation) AND NOT v.pending) <> (d.lifecycle = 'active')
 ORDER BY d.id LIMIT :limit;

-- name: contents_after
-- Contents after an id, to be compared with their hashes.
SELECT id, hash, title FROM contents WHERE id > :after ORDER BY id LIMIT :limit;
