-- name: count_unneeded_contents
-- Contents that no version would have any more; of each source :oldest says from which generation on versions stay.
SELECT count(*) AS rows FROM contents c
 WHERE NOT EXISTS (
    SELECT 1 FROM versions v
      JOIN documents d ON d.id = v.document_id
      JOIN sources s ON s.id = v.source_id AND s.removed_at IS NULL
      LEFT JOIN generations g ON g.source_id = v.source_id AND g.number = v.born
     WHERE v.content_id = c.id AND (g.state IS NULL OR g.state <> 'abandoned')
       AND (v.died IS NULL OR v.died > COALESCE(json_extract(:oldest, '$."' || v.source_id || '"'), 0)
            OR (d.lifecycle = 'missing'
                AND NOT EXISTS (SELECT 1 FROM versions newer
                                 WHERE newer.document_id = d.id AND newer.born > v.born AND NOT newer.pending))));

