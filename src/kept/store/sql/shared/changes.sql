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
           AND NOT EXISTS (SELECT 1 FROM versions next WHERE next.document_id = v.document_id AND next.born = v.died))
       AS steps
 GROUP BY number
 ORDER BY number;

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
  FROM (SELECT v.document_id, v.url, c.title, v.read_again, c.hash AS content_hash, FALSE AS removed,
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
        SELECT v.document_id, v.url, c.title, v.read_again, c.hash, TRUE, v.url, v.died, c.hash
          FROM versions v
          JOIN contents c ON c.id = v.content_id
         WHERE v.source_id = :source AND v.died = :generation
           AND NOT EXISTS (SELECT 1 FROM versions next
                            WHERE next.document_id = v.document_id AND next.born = :generation)) AS changes
 WHERE (changes.url, changes.document_id) > (:url, :document)
 ORDER BY changes.url, changes.document_id
 LIMIT :limit;
