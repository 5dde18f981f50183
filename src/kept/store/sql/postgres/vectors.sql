-- name: prepare_vectors
SELECT prepare_vectors() AS ready;

-- name: hold_models
SELECT id, name, dimensions, state FROM models ORDER BY id FOR UPDATE;

-- name: requeue_contents
-- Everything waits again: what has its vectors is passed over quickly.
INSERT INTO unembedded (content_id) SELECT id FROM contents ORDER BY id FOR KEY SHARE SKIP LOCKED
ON CONFLICT (content_id) DO UPDATE SET due_at = '-infinity';

-- name: texts_of_contents
SELECT s.id, s.content_id, c.title, s.headings, s.text
  FROM contents c JOIN sections s ON s.content_id = c.id
 WHERE c.id = ANY(:contents)
 ORDER BY s.id;

-- name: hold_contents_by_id
SELECT id FROM contents WHERE id = ANY(:contents) ORDER BY id FOR KEY SHARE;

-- name: insert_section_text
-- A section that is gone by now has none.
INSERT INTO section_texts (section_id, hash)
SELECT s.id, r.hash FROM unnest(:section::bigint[], :hash::text[]) AS r (section, hash) JOIN sections s ON s.id = r.section
 ORDER BY s.id
ON CONFLICT (section_id) DO UPDATE SET hash = excluded.hash WHERE section_texts.hash <> excluded.hash;

-- name: hold_vectors
-- Which of these texts have a vector. It stays until this transaction ends.
SELECT hash FROM vectors WHERE model_id = :model AND hash = ANY(:hashes) ORDER BY hash FOR KEY SHARE;

-- name: take_texts
-- Which of these texts are ours to embed until then.
INSERT INTO embedding_claims (model_id, hash, until)
SELECT :model::bigint, hash, :until::timestamptz FROM unnest(:hashes::text[]) AS hash ORDER BY hash
ON CONFLICT (model_id, hash) DO UPDATE SET until = excluded.until WHERE embedding_claims.until < :now AND embedding_claims.error IS NULL
RETURNING hash;

-- name: release_texts
DELETE FROM embedding_claims WHERE model_id = :model AND hash = ANY(:hashes) AND error IS NULL;

-- name: insert_vector
INSERT INTO vectors (model_id, hash, vector)
SELECT r.model, r.hash, r.vector::real[]
  FROM unnest(:model::bigint[], :hash::text[], :vector::text[]) AS r (model, hash, vector)
 ORDER BY r.hash
ON CONFLICT (model_id, hash) DO NOTHING;

-- name: settle_contents
-- Those of these contents of which every section has its vector, or is refused one, wait no longer.
DELETE FROM unembedded
 WHERE content_id IN (SELECT content_id FROM unembedded WHERE content_id = ANY(:contents) ORDER BY content_id FOR UPDATE SKIP LOCKED)
   AND NOT EXISTS (
       SELECT 1 FROM sections s LEFT JOIN section_texts t ON t.section_id = s.id
        WHERE s.content_id = unembedded.content_id
          AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.model_id = :model AND v.hash = t.hash)
          AND NOT EXISTS (SELECT 1 FROM embedding_claims r WHERE r.model_id = :model AND r.hash = t.hash AND r.error IS NOT NULL));

-- name: put_off_contents
UPDATE unembedded SET due_at = :until
 WHERE content_id IN (SELECT content_id FROM unembedded WHERE content_id = ANY(:contents) ORDER BY content_id FOR UPDATE SKIP LOCKED);

-- name: index_vectors
SELECT create_vector_index(:model, :enough) AS indexed;

-- name: forget_vectors
SELECT drop_vector_index(:model);

-- name: sections_of_vectors
-- The sections behind these vectors that the given generations show.
SELECT DISTINCT v.id AS vector_id, t.section_id
  FROM vectors v
  JOIN section_texts t ON t.hash = v.hash
  JOIN sections s ON s.id = t.section_id
  JOIN versions ver ON ver.content_id = s.content_id AND NOT ver.pending
  JOIN (SELECT CAST(value->>0 AS uuid) AS source_id, CAST(value->>1 AS bigint) AS number
          FROM jsonb_array_elements(CAST(:generations AS jsonb)) AS value) shown
    ON shown.source_id = ver.source_id AND ver.born <= shown.number AND (ver.died IS NULL OR ver.died > shown.number)
 WHERE v.id = ANY(:vectors);

-- name: vectors_in_generations
-- Every vector of a model that stands for something that the given generations show.
SELECT DISTINCT v.id
  FROM (SELECT CAST(value->>0 AS uuid) AS source_id, CAST(value->>1 AS bigint) AS number
          FROM jsonb_array_elements(CAST(:generations AS jsonb)) AS value) shown
  JOIN versions ver ON ver.source_id = shown.source_id AND NOT ver.pending
                   AND ver.born <= shown.number AND (ver.died IS NULL OR ver.died > shown.number)
  JOIN sections s ON s.content_id = ver.content_id
  JOIN section_texts t ON t.section_id = s.id
  JOIN vectors v ON v.model_id = :model AND v.hash = t.hash;

-- name: lock_vectors
-- Those that somebody looks at are passed over.
SELECT id FROM vectors WHERE id = ANY(:vectors) ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: delete_vectors
-- Looked at once more: somebody may have begun to need one.
DELETE FROM vectors
 WHERE id = ANY(:vectors)
   AND (NOT EXISTS (SELECT 1 FROM section_texts t WHERE t.hash = vectors.hash)
        OR EXISTS (SELECT 1 FROM models m WHERE m.id = vectors.model_id AND m.state = 'former'));
