-- name: count_totals
-- How many sources, visible documents and sections there are.
SELECT count(*) AS sources, COALESCE(sum(g.documents), 0) AS documents,
       (SELECT count(*) FROM sections) AS sections
  FROM sources s LEFT JOIN generations g ON g.source_id = s.id AND g.number = s.active_generation
 WHERE s.removed_at IS NULL;

-- name: active_numbers
-- The number of the active generation of each source, and its name.
SELECT id, name, version, active_generation FROM sources WHERE removed_at IS NULL ORDER BY id;

-- name: insert_source
-- The new source's id. No row: the name, or the root, is taken.
INSERT INTO sources (id, name, version, kind, root, settings, authority, created_at)
VALUES (:id, :name, :version, :kind, :root, :settings, :authority, now())
ON CONFLICT DO NOTHING
RETURNING id;

-- name: source
SELECT * FROM sources WHERE id = :id AND removed_at IS NULL;

-- name: source_by_label
SELECT * FROM sources WHERE name = :name AND version = :version AND removed_at IS NULL;

-- name: source_by_root
SELECT * FROM sources WHERE root = :root AND version = :version AND removed_at IS NULL;

-- name: sources
SELECT * FROM sources WHERE removed_at IS NULL ORDER BY name, version;

-- name: active_generations
SELECT id, active_generation FROM sources WHERE removed_at IS NULL AND active_generation IS NOT NULL ORDER BY name, version;

-- name: allocate_generation_number
UPDATE sources SET next_generation = next_generation + 1 WHERE id = :id RETURNING next_generation - 1 AS number;

-- name: set_active_generation
UPDATE sources SET active_generation = :generation WHERE id = :id;

-- name: set_source_settings
UPDATE sources SET settings = :settings WHERE id = :id;

-- name: rename_source
-- Changes no row if another source has that name, or the same root with that version.
UPDATE sources SET name = :name, version = :version
 WHERE id = :id AND NOT EXISTS (SELECT 1 FROM sources other
                                 WHERE other.id <> :id AND other.removed_at IS NULL AND other.version = :version
                                   AND (other.name = :name OR other.root = sources.root));

-- name: set_source_authority
UPDATE sources SET authority = :authority WHERE id = :id;

-- name: pause_schedule
UPDATE sources SET schedule_paused_at = now() WHERE id = :id AND schedule_paused_at IS NULL;

-- name: resume_schedule
UPDATE sources SET schedule_paused_at = NULL WHERE id = :id AND schedule_paused_at IS NOT NULL;

-- name: set_next_run
UPDATE sources SET next_run_at = :at WHERE id = :id;

-- name: due_sources
SELECT * FROM sources
 WHERE next_run_at <= :now AND schedule_paused_at IS NULL AND removed_at IS NULL
 ORDER BY next_run_at, id LIMIT :limit;

-- name: claim_run
-- Changes no row if another process has claimed this run, or the schedule was paused or changed meanwhile.
UPDATE sources SET next_run_at = :next, runs = runs + 1
 WHERE id = :id AND next_run_at = :seen AND schedule_paused_at IS NULL AND removed_at IS NULL;

-- name: set_validators_wrong
UPDATE sources SET validators_wrong_at = CASE WHEN :wrong THEN now() END WHERE id = :id;

-- name: set_sitemap_wrong
-- Changes no row if that is known already.
UPDATE sources SET sitemap_wrong_at = CASE WHEN :wrong THEN now() END
 WHERE id = :id AND (sitemap_wrong_at IS NULL) = :wrong;

-- name: mark_source_removed
-- Its name and root are free from now on.
UPDATE sources SET removed_at = now(), active_generation = NULL WHERE id = :id AND removed_at IS NULL;

-- name: removed_sources
SELECT id FROM sources WHERE removed_at IS NOT NULL ORDER BY removed_at LIMIT :limit;

-- name: delete_source
DELETE FROM sources WHERE id = :id;

-- name: delete_generations_of_source
DELETE FROM generations WHERE source_id = :source;

-- name: delete_jobs_of_source
DELETE FROM crawl_jobs WHERE source_id = :source;

-- name: set_root_identity
UPDATE sources SET root_identity = :identity WHERE id = :id AND root_identity IS DISTINCT FROM :identity;

-- name: lock_source
SELECT * FROM sources WHERE id = :id AND removed_at IS NULL {for no key update};

-- name: lock_removed_source
SELECT id FROM sources WHERE id = :id AND removed_at IS NOT NULL {for update};

-- name: sources_named
-- The names of sources that a word of a query stands for: itself, or a longer or shorter form (postgres, postgresql).
SELECT s.id, s.active_generation, s.name, item.value AS word
  FROM {each :words as text}
  JOIN sources s ON s.removed_at IS NULL AND s.active_generation IS NOT NULL
   AND (lower(s.name) = item.value
        OR (length(item.value) >= 4 AND length(s.name) >= 4
            AND (substr(lower(s.name), 1, length(item.value)) = item.value OR substr(item.value, 1, length(s.name)) = lower(s.name))));
