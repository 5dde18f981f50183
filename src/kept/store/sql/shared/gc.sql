-- What garbage collection would take away; the statements that do it are those of the tables ------------------

-- name: count_old_generations
SELECT count(*) AS rows FROM generations
 WHERE source_id = :source AND number < :oldest AND (state = 'retired' OR (state = 'abandoned' AND cleared));

-- name: count_dead_versions
SELECT count(*) AS rows
  FROM versions v
  JOIN documents d ON d.id = v.document_id
 WHERE v.source_id = :source AND v.died <= :oldest
   AND (d.lifecycle <> 'missing'
        OR EXISTS (SELECT 1 FROM versions newer
                    WHERE newer.document_id = d.id AND newer.born > v.born AND NOT newer.pending));

-- name: count_forgotten_documents
SELECT count(*) AS rows FROM documents d
 WHERE d.source_id = :source AND d.lifecycle = 'deleted'
   AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document_id = d.id AND (v.died IS NULL OR v.died > :oldest));

-- name: count_versions_of_source
SELECT count(*) AS rows FROM versions WHERE source_id = :source;

-- name: count_versions_of_generation
SELECT count(*) AS rows FROM versions WHERE source_id = :source AND born = :generation;

-- name: count_entries
SELECT count(*) AS rows FROM frontier WHERE job_id = :job;

-- name: unneeded_contents
-- Contents that no version has, from an id on.
SELECT c.id FROM contents c
 WHERE c.id > :after AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.content_id = c.id)
 ORDER BY c.id LIMIT :limit;

-- name: unneeded_content
-- Asked once more, now that it is locked: a crawl may have come to use it before that.
SELECT id FROM contents WHERE id = :id AND NOT EXISTS (SELECT 1 FROM versions WHERE content_id = :id);

-- name: entries_of_source
-- The frontiers of a removed source.
SELECT DISTINCT job_id FROM frontier WHERE job_id IN (SELECT id FROM crawl_jobs WHERE source_id = :source);
