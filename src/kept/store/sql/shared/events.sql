-- name: watched_jobs
-- Jobs that are live, or ended since then; the oldest first.
SELECT j.*, s.name AS source_name, s.version AS source_version,
       (SELECT count(*) FROM job_workers w WHERE w.job_id = j.id) AS workers
  FROM crawl_jobs j JOIN sources s ON s.id = j.source_id
 WHERE j.status IN ('pending', 'processing', 'paused') OR j.completed_at >= :since
 ORDER BY j.id;

-- name: entries_since
-- What a job's batches brought after an entry of one of them, in the order they were committed.
SELECT id, batch, url, outcome, reason, http_status, depth, document_id, redirect_to, visited_at
  FROM frontier
 WHERE job_id = :job AND batch IS NOT NULL AND batch >= :batch AND (batch > :batch OR id > :entry) AND outcome IS NOT NULL
 ORDER BY batch, id
 LIMIT :limit;

-- name: jobs_by_status
SELECT status, count(*) AS jobs FROM crawl_jobs GROUP BY status;

-- name: how_much
-- How much is kept and shown.
SELECT count(*) AS sources, COALESCE(sum(g.documents), 0) AS documents,
       (SELECT count(*) FROM sections) AS sections
  FROM sources s LEFT JOIN generations g ON g.source_id = s.id AND g.number = s.active_generation
 WHERE s.removed_at IS NULL;

-- name: standing
-- Which generation each source shows.
SELECT id, name, version, active_generation FROM sources WHERE removed_at IS NULL ORDER BY id;
