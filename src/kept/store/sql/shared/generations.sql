-- name: insert_generation
INSERT INTO generations (source_id, number, base, state, job_id, mode, settings, documents, reason, created_at)
SELECT id, :number, active_generation, 'building', :job, :mode, settings, 0, :reason, now()
  FROM sources WHERE id = :source;

-- name: inherit_settings
-- Its documents were kept under the settings of another generation.
UPDATE generations
   SET settings = (SELECT g.settings FROM generations g WHERE g.source_id = :source AND g.number = :heir_of)
 WHERE source_id = :source AND number = :number;

-- name: generation
SELECT * FROM generations WHERE source_id = :source AND number = :number;

-- name: generations
SELECT * FROM generations WHERE source_id = :source ORDER BY number;

-- name: upcoming_generation
-- The one that is being built or held.
SELECT * FROM generations WHERE source_id = :source AND state IN ('building', 'held');

-- name: transition_generation
-- Changes no row if another process changed its state first.
UPDATE generations SET state = :to, reason = COALESCE(:reason, reason)
 WHERE source_id = :source AND number = :number AND state = :from;

-- name: activate_generation
UPDATE generations
   SET state = 'active', activated_at = now(), documents = :documents, tally = :tally, changed = :changed,
       whole = :whole, partial = :partial
 WHERE source_id = :source AND number = :number AND state IN ('building', 'held');

-- name: set_held_counts
UPDATE generations SET documents = :documents, tally = :tally, partial = :partial
 WHERE source_id = :source AND number = :number;

-- name: uncleared_generations
SELECT number FROM generations WHERE source_id = :source AND state = 'abandoned' AND NOT cleared ORDER BY number;

-- name: sources_with_uncleared_generations
SELECT DISTINCT source_id FROM generations WHERE state = 'abandoned' AND NOT cleared;

-- name: mark_cleared
UPDATE generations SET cleared = TRUE WHERE source_id = :source AND number = :number AND state = 'abandoned';

-- name: count_changes
-- How many versions were born in a generation, how many of those changed a page or replace a living version, how many
-- died in it, and how many of those without a successor.
SELECT (SELECT count(*) FROM versions WHERE source_id = :source AND born = :number) AS brought,
       (SELECT count(*) FROM versions WHERE source_id = :source AND born = :number AND NOT read_again) AS news,
       (SELECT count(*) FROM versions WHERE source_id = :source AND born = :number AND pending) AS replacing,
       (SELECT count(*) FROM versions WHERE source_id = :source AND died = :number) AS ended,
       (SELECT count(*) FROM versions v WHERE v.source_id = :source AND v.died = :number
           AND NOT EXISTS (SELECT 1 FROM versions next WHERE next.document_id = v.document_id AND next.born = :number)
       ) AS removed;

-- name: oldest_retained
-- The number of the oldest generation to keep; it and all later ones stay.
SELECT min(number) AS number
  FROM (SELECT number FROM generations
         WHERE source_id = :source AND state IN ('active', 'held', 'building')
        UNION ALL
        SELECT base FROM generations
         WHERE source_id = :source AND state IN ('held', 'building') AND base IS NOT NULL
        UNION ALL
        SELECT number FROM generations
         WHERE source_id = :source AND state = 'retired' AND activated_at > ago(:seconds)
        UNION ALL
        SELECT number
          FROM (SELECT number FROM generations
                 WHERE source_id = :source AND changed AND state IN ('active', 'retired')
                 ORDER BY number DESC LIMIT :keep) AS newest) AS retained;

-- name: delete_old_generations
DELETE FROM generations
 WHERE source_id = :source AND number < :oldest AND (state = 'retired' OR (state = 'abandoned' AND cleared));

-- name: last_verified
-- When a crawl last visited every known document.
SELECT max(created_at) AS verified_at FROM generations WHERE source_id = :source AND whole AND activated_at IS NOT NULL;
