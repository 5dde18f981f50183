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
       whole = :whole, partial = :partial, reason = :reason
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
-- died in it, and how many of those without a successor. (OFFSET 0, here and elsewhere: a look-up for each version.
-- PostgreSQL would join all of them with all that the generation brought, which its statistics do not know yet.)
SELECT (SELECT count(*) FROM versions WHERE source_id = :source AND born = :number) AS brought,
       (SELECT count(*) FROM versions WHERE source_id = :source AND born = :number AND NOT read_again) AS news,
       (SELECT count(*) FROM versions WHERE source_id = :source AND born = :number AND pending) AS replacing,
       (SELECT count(*) FROM versions WHERE source_id = :source AND died = :number) AS ended,
       (SELECT count(*) FROM versions v WHERE v.source_id = :source AND v.died = :number
           AND NOT EXISTS (SELECT 1 FROM versions next
                            WHERE next.document_id = v.document_id AND next.born = :number {postgres: OFFSET 0})
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

-- name: changes_by_generation
-- How many documents each generation after :since added, changed, moved and lost. One that moved may have changed too;
-- the same bytes, read by another reader, are no change.
SELECT number, sum(added) AS added, sum(changed) AS changed, sum(moved) AS moved, sum(lost) AS lost
  FROM (SELECT v.born AS number,
               CASE WHEN former.id IS NULL THEN 1 ELSE 0 END AS added,
               CASE WHEN former.content_id <> v.content_id AND NOT v.read_again THEN 1 ELSE 0 END AS changed,
               CASE WHEN former.url <> v.url THEN 1 ELSE 0 END AS moved,
               0 AS lost
          FROM versions v
          LEFT JOIN versions former ON former.document_id = v.document_id AND former.died = v.born
         WHERE v.source_id = :source AND v.born > :since AND NOT v.pending
        UNION ALL
        SELECT v.died, 0, 0, 0, 1
          FROM versions v
         WHERE v.source_id = :source AND v.died > :since
           AND NOT EXISTS (SELECT 1 FROM versions next
                            WHERE next.document_id = v.document_id AND next.born = v.died {postgres: OFFSET 0}))
       AS steps
 GROUP BY number
 ORDER BY number;

-- name: removal_reasons
-- Why a generation removed documents: how many for each reason, the commonest first.
SELECT COALESCE(v.end_reason, 'unknown') AS reason, count(*) AS documents
  FROM versions v
 WHERE v.source_id = :source AND v.died = :generation
   AND NOT EXISTS (SELECT 1 FROM versions next
                    WHERE next.document_id = v.document_id AND next.born = :generation {postgres: OFFSET 0})
 GROUP BY COALESCE(v.end_reason, 'unknown')
 ORDER BY count(*) DESC, reason
 LIMIT :limit;

-- name: changed_generations
-- Generations that changed something, the latest first, from a position in that order on. Without its base, which may be
-- no longer retained, what a generation changed is unknown.
SELECT g.source_id, s.name AS source_name, s.version AS source_version, g.number, g.activated_at,
       CASE WHEN g.mode IS NULL THEN g.reason END AS rolled_back
  FROM generations g
  JOIN sources s ON s.id = g.source_id AND s.removed_at IS NULL
 WHERE g.changed AND g.activated_at > :since
   AND (g.activated_at, g.source_id, g.number) <= (:at, :source, :number)
   AND (g.base IS NULL OR EXISTS (SELECT 1 FROM generations b WHERE b.source_id = g.source_id AND b.number = g.base))
 ORDER BY g.activated_at DESC, g.source_id DESC, g.number DESC
 LIMIT :limit;

-- name: changed_generations_of_source
SELECT g.source_id, s.name AS source_name, s.version AS source_version, g.number, g.activated_at,
       CASE WHEN g.mode IS NULL THEN g.reason END AS rolled_back
  FROM generations g
  JOIN sources s ON s.id = g.source_id
 WHERE g.changed AND g.activated_at > :since AND g.source_id = :source AND g.number <= :number
   AND (g.base IS NULL OR EXISTS (SELECT 1 FROM generations b WHERE b.source_id = g.source_id AND b.number = g.base))
 ORDER BY g.number DESC
 LIMIT :limit;

-- name: changes_in_generation
-- The change of each document in a generation, by URL, from a position in that order on. before_* is the version before;
-- a removed document has nothing else. The same bytes, read by another reader, are no change.
SELECT changes.*
  FROM (SELECT v.document_id, v.url, c.title, v.read_again, c.hash AS content_hash, FALSE AS removed, NULL AS end_reason,
               former.url AS before_url, former.died AS before_died, old.hash AS before_hash
          FROM versions v
          JOIN contents c ON c.id = v.content_id
          LEFT JOIN versions former
                 ON former.document_id = v.document_id
                AND former.born = (SELECT max(one.born) FROM versions one
                                    WHERE one.document_id = v.document_id AND one.born < v.born)
          LEFT JOIN contents old ON old.id = former.content_id
         WHERE v.source_id = :source AND v.born = :generation AND NOT v.pending
           AND (NOT v.read_again OR v.url <> former.url OR former.died < v.born)
        UNION ALL
        SELECT v.document_id, v.url, c.title, v.read_again, c.hash, TRUE, v.end_reason, v.url, v.died, c.hash
          FROM versions v
          JOIN contents c ON c.id = v.content_id
         WHERE v.source_id = :source AND v.died = :generation
           AND NOT EXISTS (SELECT 1 FROM versions next
                            WHERE next.document_id = v.document_id AND next.born = :generation {postgres: OFFSET 0})
       ) AS changes
 WHERE (changes.url, changes.document_id) > (:url, :document)
 ORDER BY changes.url, changes.document_id
 LIMIT :limit;
