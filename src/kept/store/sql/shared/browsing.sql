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

-- name: entries_of_job
-- A page of a job's frontier, by URL. :outcome 'open': what has not been visited yet; none: everything.
SELECT f.*, s.name AS source_name, s.version AS source_version
  FROM frontier f
  JOIN crawl_jobs j ON j.id = f.job_id
  JOIN sources s ON s.id = j.source_id
 WHERE f.job_id = :job AND f.url > :after
   AND COALESCE(f.outcome, 'open') = COALESCE(CAST(:outcome AS TEXT), f.outcome, 'open')
 ORDER BY f.url
 LIMIT :limit;

-- name: batches_of_job
-- How many entries each batch settled, and when.
SELECT batch, count(*) AS entries, max(visited_at) AS settled_at
  FROM frontier
 WHERE job_id = :job AND visited_at IS NOT NULL AND batch IS NOT NULL
 GROUP BY batch
 ORDER BY batch;
