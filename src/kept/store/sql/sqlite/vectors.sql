-- name: prepare_vectors
SELECT 1 AS ready;

-- name: hold_models
SELECT id, name, dimensions, state FROM models ORDER BY id;

-- name: requeue_contents
-- Everything waits again: what has its vectors is passed over quickly.
INSERT INTO unembedded (content_id) SELECT id FROM contents WHERE TRUE ON CONFLICT (content_id) DO UPDATE SET due_at = '';

-- name: texts_of_contents
SELECT s.id, s.content_id, c.title, s.headings, s.text
  FROM json_each(:contents) AS asked
  JOIN contents c ON c.id = asked.value
  JOIN sections s ON s.content_id = c.id
 ORDER BY s.id;

-- name: hold_contents_by_id
SELECT id FROM contents WHERE id IN (SELECT value FROM json_each(:contents));

-- name: insert_section_text
-- A section that is gone by now has none.
INSERT INTO section_texts (section_id, hash) SELECT id, :hash FROM sections WHERE id = :section
ON CONFLICT (section_id) DO UPDATE SET hash = excluded.hash WHERE hash <> excluded.hash;

-- name: hold_vectors
-- Which of these texts have a vector.
SELECT hash FROM vectors WHERE model_id = :model AND hash IN (SELECT value FROM json_each(:hashes));

-- name: take_texts
-- Which of these texts are ours to embed until then.
INSERT INTO embedding_claims (model_id, hash, until) SELECT :model, value, :until FROM json_each(:hashes) WHERE TRUE
ON CONFLICT (model_id, hash) DO UPDATE SET until = excluded.until WHERE until < :now AND error IS NULL
RETURNING hash;

-- name: release_texts
DELETE FROM embedding_claims
 WHERE model_id = :model AND hash IN (SELECT value FROM json_each(:hashes)) AND error IS NULL;

-- name: insert_vector
INSERT INTO vectors (model_id, hash, vector) VALUES (:model, :hash, :vector) ON CONFLICT (model_id, hash) DO NOTHING;

-- name: settle_contents
-- Those of these contents of which every section has its vector, or is refused one, wait no longer.
DELETE FROM unembedded
 WHERE content_id IN (SELECT value FROM json_each(:contents))
   AND NOT EXISTS (
       SELECT 1 FROM sections s LEFT JOIN section_texts t ON t.section_id = s.id
        WHERE s.content_id = unembedded.content_id
          AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model AND v.hash = t.hash)
          AND NOT EXISTS (SELECT 1 FROM embedding_claims r WHERE r.model_id = :model AND r.hash = t.hash AND r.error IS NOT NULL));

-- name: put_off_contents
UPDATE unembedded SET due_at = :until WHERE content_id IN (SELECT value FROM json_each(:contents));

-- name: index_vectors
-- Nothing to do: here vectors are compared in memory.
SELECT 0 AS indexed WHERE :model + :enough IS NULL;

-- name: forget_vectors
SELECT 0 WHERE :model IS NULL;

-- name: sections_of_vectors
-- The sections behind these vectors that the given generations show.
SELECT DISTINCT v.id AS vector_id, t.section_id
  FROM json_each(:vectors) AS asked
  JOIN vectors v ON v.id = asked.value
  JOIN section_texts t ON t.hash = v.hash
  JOIN sections s ON s.id = t.section_id
  JOIN versions ver ON ver.content_id = s.content_id AND NOT ver.pending
  JOIN (SELECT json_extract(value, '$[0]') AS source_id, json_extract(value, '$[1]') AS number
          FROM json_each(:generations)) shown
    ON shown.source_id = ver.source_id AND ver.born <= shown.number AND (ver.died IS NULL OR ver.died > shown.number);

-- name: vectors_in_generations
-- Every vector of a model that stands for something that the given generations show.
SELECT DISTINCT v.id
  FROM (SELECT json_extract(value, '$[0]') AS source_id, json_extract(value, '$[1]') AS number
          FROM json_each(:generations)) shown
  JOIN versions ver ON ver.source_id = shown.source_id AND NOT ver.pending
                   AND ver.born <= shown.number AND (ver.died IS NULL OR ver.died > shown.number)
  JOIN sections s ON s.content_id = ver.content_id
  JOIN section_texts t ON t.section_id = s.id
  JOIN vectors v ON v.model_id = :model AND v.hash = t.hash;

-- name: lock_vectors
-- A transaction that writes is alone already.
SELECT id FROM vectors WHERE id IN (SELECT value FROM json_each(:vectors));

-- name: delete_vectors
-- Looked at once more: somebody may have begun to need one.
DELETE FROM vectors
 WHERE id IN (SELECT value FROM json_each(:vectors))
   AND (NOT EXISTS (SELECT 1 FROM section_texts t WHERE t.hash = vectors.hash)
        OR EXISTS (SELECT 1 FROM models m WHERE m.id = vectors.model_id AND m.state = 'former'));
