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

-- name: count_orphaned_documents
SELECT count(*) AS rows FROM documents d
 WHERE d.source_id = :source AND d.lifecycle = 'deleted'
   AND NOT EXISTS (SELECT 1 FROM versions v WHERE v.document_id = d.id AND (v.died IS NULL OR v.died > :oldest));

-- name: count_versions_of_source
SELECT count(*) AS rows FROM versions WHERE source_id = :source;

-- name: count_versions_of_generation
SELECT count(*) AS rows FROM versions WHERE source_id = :source AND born = :generation;

-- name: count_entries
SELECT count(*) AS rows FROM frontier WHERE job_id = :job;

-- name: start_maintenance_pass
-- Changes no row if it was started within so many seconds. Of two processes at the same time the second waits.
-- A start in the far future is a clock that was set back. The near future is not: now() is the start of a transaction, and
-- one that waited for another may have begun first.
INSERT INTO maintenance_passes (name, started_at) VALUES (:name, now())
    ON CONFLICT (name) DO UPDATE SET started_at = now() WHERE maintenance_passes.started_at < ago(:seconds) OR maintenance_passes.started_at > ago(-:seconds);

-- name: recent_maintenance_pass
SELECT started_at FROM maintenance_passes WHERE name = :name AND started_at > ago(:seconds);

-- name: count_unreferenced_contents
-- Contents that no version would have if of each source only the versions from generation :oldest[source] on stayed.
SELECT count(*) AS rows FROM contents c
 WHERE NOT EXISTS (
    SELECT 1 FROM versions v
      JOIN documents d ON d.id = v.document_id
      JOIN sources s ON s.id = v.source_id AND s.removed_at IS NULL
      LEFT JOIN generations g ON g.source_id = v.source_id AND g.number = v.born
     WHERE v.content_id = c.id AND (g.state IS NULL OR g.state <> 'abandoned')
       AND (v.died IS NULL OR v.died > COALESCE(CAST({:oldest as jsonb} ->> CAST(v.source_id AS TEXT) AS BIGINT), 0)
            OR (d.lifecycle = 'missing'
                AND NOT EXISTS (SELECT 1 FROM versions newer
                                 WHERE newer.document_id = d.id AND newer.born > v.born AND NOT newer.pending))));
