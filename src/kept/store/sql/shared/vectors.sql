-- name: set_model_state
UPDATE models SET state = :state WHERE id = :model;

-- name: insert_model
-- Changes no row if there is a model of this name or in this state already.
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

-- name: has_unembedded
-- A row if the backlog is not empty, due or not.
SELECT 1 AS unembedded FROM unembedded LIMIT 1;

-- name: count_unembedded_sections
-- Of the generation that each source shows: the sections that have no vector of the model that serves.
SELECT d.source_id, count(*) AS sections
  FROM unembedded u
  JOIN documents_active d ON d.content_id = u.content_id
  JOIN sections s ON s.content_id = u.content_id
 WHERE NOT EXISTS (SELECT 1 FROM section_texts t JOIN vectors v ON v.hash = t.hash
                    WHERE t.section_id = s.id AND v.model_id = :model)
 GROUP BY d.source_id;

-- name: mark_refused
UPDATE embedding_claims SET error = :error WHERE model_id = :model AND hash = :hash;

-- name: former_models
SELECT id FROM models WHERE state = 'former';

-- name: delete_claims
DELETE FROM embedding_claims WHERE model_id = :model;

-- name: unreferenced_vectors
-- Vectors that no section uses, or of a former model.
SELECT v.id FROM vectors v JOIN models m ON m.id = v.model_id
 WHERE v.id > :after AND (m.state = 'former' OR NOT EXISTS (SELECT 1 FROM section_texts t WHERE t.hash = v.hash))
 ORDER BY v.id LIMIT :limit;

-- name: lock_models
SELECT id, name, dimensions, state FROM models ORDER BY id {for update};

-- name: requeue_contents
-- Every content is due now; those that have their vectors are passed over quickly.
INSERT INTO unembedded (content_id) SELECT id FROM contents WHERE TRUE ORDER BY id {for key share skip locked}
ON CONFLICT (content_id) DO UPDATE SET due_at = excluded.due_at;

-- name: texts_of_contents
SELECT s.id, s.content_id, c.title, s.headings, s.text
  FROM {each :contents as bigint}
  JOIN contents c ON c.id = item.value
  JOIN sections s ON s.content_id = c.id
 ORDER BY s.id;

-- name: insert_section_text
-- A section that was deleted meanwhile gets none.
WITH {rows section bigint, hash text}
INSERT INTO section_texts (section_id, hash)
SELECT s.id, new.hash FROM new {sqlite: CROSS} JOIN sections s ON s.id = new.section WHERE TRUE {postgres: ORDER BY s.id}
ON CONFLICT (section_id) DO UPDATE SET hash = excluded.hash WHERE section_texts.hash <> excluded.hash;

-- name: lock_vectors_by_hash
-- Which of these texts have a vector. It stays until this transaction ends.
SELECT hash FROM vectors WHERE model_id = :model AND hash {in :hashes} ORDER BY hash {for key share};

-- name: claim_texts
-- Which of these texts are the caller's to embed until then.
INSERT INTO embedding_claims (model_id, hash, until)
SELECT {:model as bigint}, item.value, {:until as timestamptz} FROM {each :hashes as text} WHERE TRUE ORDER BY item.value
ON CONFLICT (model_id, hash) DO UPDATE SET until = excluded.until
      WHERE embedding_claims.until < :now AND embedding_claims.error IS NULL
RETURNING hash;

-- name: release_texts
DELETE FROM embedding_claims WHERE model_id = :model AND hash {in :hashes} AND error IS NULL;

-- name: insert_vector
WITH {rows model bigint, hash text, vector text}
INSERT INTO vectors (model_id, hash, vector)
SELECT new.model, new.hash, {new.vector as real[]} FROM new WHERE TRUE {postgres: ORDER BY new.hash}
ON CONFLICT (model_id, hash) DO NOTHING;

-- name: mark_embedded
-- Removes from the backlog those of these contents whose every section has its vector, or was refused one.
DELETE FROM unembedded
 WHERE content_id IN (SELECT content_id FROM unembedded
                       WHERE content_id {in :contents} ORDER BY content_id {for update skip locked})
   AND NOT EXISTS (
       SELECT 1 FROM sections s LEFT JOIN section_texts t ON t.section_id = s.id
        WHERE s.content_id = unembedded.content_id
          AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model AND v.hash = t.hash)
          AND NOT EXISTS (SELECT 1 FROM embedding_claims r
                           WHERE r.model_id = :model AND r.hash = t.hash AND r.error IS NOT NULL));

-- name: postpone_contents
UPDATE unembedded SET due_at = :until
 WHERE content_id IN (SELECT content_id FROM unembedded
                       WHERE content_id {in :contents} ORDER BY content_id {for update skip locked});

-- name: sections_of_vectors
-- The sections behind these vectors that the given generations show.
SELECT DISTINCT v.id AS vector_id, t.section_id
  FROM {each :vectors as bigint}
  JOIN vectors v ON v.id = item.value
  JOIN section_texts t ON t.hash = v.hash
  JOIN sections s ON s.id = t.section_id
  JOIN versions ver ON ver.content_id = s.content_id AND NOT ver.pending
  JOIN {generations :generations} AS shown
    ON shown.source_id = ver.source_id AND ver.born <= shown.number AND (ver.died IS NULL OR ver.died > shown.number);

-- name: vectors_in_generations
-- Every vector of a model that belongs to a section that the given generations show.
SELECT DISTINCT v.id
  FROM {generations :generations} AS shown
  JOIN versions ver ON ver.source_id = shown.source_id AND NOT ver.pending
                   AND ver.born <= shown.number AND (ver.died IS NULL OR ver.died > shown.number)
  JOIN sections s ON s.content_id = ver.content_id
  JOIN section_texts t ON t.section_id = s.id
  JOIN vectors v ON v.model_id = :model AND v.hash = t.hash;

-- name: lock_vectors_for_deletion
-- Those that another transaction is about to use are left out.
SELECT id FROM vectors WHERE id {in :vectors} ORDER BY id {for update skip locked};

-- name: delete_vectors
-- Checked once more: another transaction may have begun to use one.
DELETE FROM vectors
 WHERE id {in :vectors}
   AND (NOT EXISTS (SELECT 1 FROM section_texts t WHERE t.hash = vectors.hash)
        OR EXISTS (SELECT 1 FROM models m WHERE m.id = vectors.model_id AND m.state = 'former'));
