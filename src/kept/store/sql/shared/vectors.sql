-- name: set_model_state
UPDATE models SET state = :state WHERE id = :model;

-- name: insert_model
-- Touches no row if somebody was first, with this name or in this state.
INSERT INTO models (name, state, created_at) VALUES (:name, :state, now()) ON CONFLICT DO NOTHING;

-- name: set_model_dimensions
UPDATE models SET dimensions = :dimensions WHERE id = :model AND dimensions IS NULL;

-- name: serving_model
SELECT id, name, dimensions, state FROM models WHERE state = 'serving';

-- name: target_model
SELECT id, name, dimensions, state FROM models WHERE state <> 'former' ORDER BY state DESC LIMIT 1;

-- name: unembedded_contents
-- The first that are due.
SELECT content_id FROM unembedded WHERE due_at <= :now ORDER BY content_id LIMIT :limit;

-- name: is_unembedded
-- A row if anything waits, due or not.
SELECT 1 AS waits FROM unembedded LIMIT 1;

-- name: count_unembedded_sections
-- Of the generation that each source shows: the sections that have no vector of the model that serves.
SELECT d.source_id, count(*) AS sections
  FROM unembedded u
  JOIN documents_active d ON d.content_id = u.content_id
  JOIN sections s ON s.content_id = u.content_id
 WHERE NOT EXISTS (SELECT 1 FROM section_texts t JOIN vectors v ON v.hash = t.hash
                    WHERE t.section_id = s.id AND v.model_id = :model)
 GROUP BY d.source_id;

-- name: refuse_text
UPDATE embedding_claims SET error = :error WHERE model_id = :model AND hash = :hash;

-- name: former_models
SELECT id FROM models WHERE state = 'former';

-- name: delete_refusals
DELETE FROM embedding_claims WHERE model_id = :model;

-- name: unneeded_vectors
-- Vectors that no section has, or of a model that does not serve any more.
SELECT v.id FROM vectors v JOIN models m ON m.id = v.model_id
 WHERE v.id > :after AND (m.state = 'former' OR NOT EXISTS (SELECT 1 FROM section_texts t WHERE t.hash = v.hash))
 ORDER BY v.id LIMIT :limit;
