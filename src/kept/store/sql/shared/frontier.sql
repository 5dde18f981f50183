-- name: seed_known
-- Every document that the base shows is visited, whether or not something names it.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at)
SELECT :job, v.url, v.depth, FALSE, v.id, v.document_id, now()
  FROM versions v
 WHERE v.source_id = :source AND v.born <= :base AND (v.died IS NULL OR v.died > :base) AND NOT v.pending
 ORDER BY v.depth, v.url
ON CONFLICT (job_id, url) DO NOTHING;

-- name: seed_failed
-- A repair visits what failed in the ledger: known documents and URLs that never gave content.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at)
SELECT :job, f.url, f.depth, TRUE, v.id, v.document_id, now()
  FROM frontier f
  LEFT JOIN versions v ON v.source_id = :source AND v.url = f.url AND v.died IS NULL AND NOT v.pending
 WHERE f.job_id = :ledger AND f.outcome = 'failed'
 ORDER BY f.url
ON CONFLICT (job_id, url) DO NOTHING;

-- name: seed_errors
-- Known documents that could not be read, by whichever crawl.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at)
SELECT :job, v.url, v.depth, TRUE, v.id, v.document_id, now()
  FROM documents d
  JOIN versions v ON v.document_id = d.id AND v.died IS NULL AND NOT v.pending
 WHERE d.source_id = :source AND d.lifecycle = 'error' AND (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL)
 ORDER BY v.url
ON CONFLICT (job_id, url) DO NOTHING;

-- name: pages_that_changed
-- What is shown and was otherwise before: how often it changed, as far as its history is kept.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.fetched_at, min(former.fetched_at) AS known_since,
       count(*) - sum(CASE WHEN former.read_again THEN 1 ELSE 0 END) - max(CASE WHEN v.read_again THEN 1 ELSE 0 END) AS changes
  FROM versions former
  JOIN versions v ON v.document_id = former.document_id AND v.died IS NULL AND NOT v.pending
 WHERE former.source_id = :source AND former.died IS NOT NULL
 GROUP BY v.id, v.document_id, v.url, v.depth, v.fetched_at;

-- name: expect_entry
-- A link led here before the redirect of a document did: now no limit keeps it out.
UPDATE frontier SET document_id = :document
 WHERE job_id = :job AND url = :url AND outcome IS NULL AND document_id IS NULL;

-- name: insert_listed_entry
-- What an origin that lists everything names. An outcome: its validators are those we hold, so there is nothing to visit.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at, outcome, reason, by_settings,
                      redirect_to, visited_at, batch)
VALUES (:job, :url, :depth, TRUE, :version, :document, now(), :outcome, :reason, :by_settings, :redirect_to,
        CASE WHEN CAST(:outcome AS TEXT) IS NULL THEN NULL ELSE now() END, :batch)
ON CONFLICT (job_id, url) DO NOTHING;

-- name: frontier_urls
SELECT url FROM frontier WHERE job_id = :job;

-- name: held_tags
-- What the base shows: URL, version, ETag. Without the ETag where it would not be enough: another
-- :signature read it, it has other validators, or activation asks for its entry, changed or not.
SELECT v.url, v.id,
       CASE WHEN v.signature = :signature AND v.last_modified IS NULL AND v.canonical IS NULL
             AND v.document_id NOT IN (SELECT d.id FROM documents d WHERE d.source_id = :source
                                          AND (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL))
            THEN v.etag END
  FROM versions v
 WHERE v.source_id = :source AND v.born <= :base AND (v.died IS NULL OR v.died > :base) AND NOT v.pending;

-- name: release_entry
-- To be tried again, after a while.
UPDATE frontier SET worker_id = NULL, attempts = attempts + 1, due_at = :due_at, reason = :reason, http_status = :status
 WHERE job_id = :job AND url = :url;

-- name: unfinished
-- Whether entries are left: reached ones, others; and when the next one that nobody has leased is due.
SELECT EXISTS (SELECT 1 FROM frontier WHERE job_id = :job AND outcome IS NULL AND reached = TRUE) AS reached,
       EXISTS (SELECT 1 FROM frontier WHERE job_id = :job AND outcome IS NULL AND reached = FALSE) AS known,
       (SELECT due_at FROM frontier WHERE job_id = :job AND outcome IS NULL AND reached = TRUE AND worker_id IS NULL
         ORDER BY due_at LIMIT 1) AS due_reached,
       (SELECT due_at FROM frontier WHERE job_id = :job AND outcome IS NULL AND reached = FALSE AND worker_id IS NULL
         ORDER BY due_at LIMIT 1) AS due_known;

-- name: new_under_way
SELECT count(*) AS entries FROM frontier
 WHERE worker_id IN (SELECT id FROM job_workers WHERE job_id = :job) AND outcome IS NULL AND version_id IS NULL;

-- name: give_back_entries
UPDATE frontier SET worker_id = NULL WHERE worker_id = :worker;

-- name: frontier_exceptions
SELECT f.url, f.depth, f.outcome, f.reason, f.by_settings, f.redirect_to, f.reached, f.document_id, f.version_id, v.content_id,
       d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.verified_at
  FROM frontier f
  LEFT JOIN versions v ON v.id = f.version_id
  LEFT JOIN documents d ON d.id = f.document_id
 WHERE f.job_id = :job AND f.outcome IN ('moved', 'gone', 'failed', 'skipped')
   AND (f.document_id IS NOT NULL OR f.redirect_to IS NOT NULL);

-- name: unreached_documents
-- Known documents that still answer, but that nothing leads to any more.
SELECT f.url, f.depth, f.outcome, f.reason, f.by_settings, f.redirect_to, f.reached, f.document_id, f.version_id, v.content_id,
       d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.verified_at
  FROM frontier f
  JOIN versions v ON v.id = f.version_id
  JOIN documents d ON d.id = f.document_id
 WHERE f.job_id = :job AND NOT f.reached AND f.outcome IN ('unchanged', 'changed');

-- name: entries_with_canonical
-- Pages that this crawl saw and that should be known by another URL: what is new or changed, what stayed as it was, and
-- what stayed but for its canonical URL.
SELECT f.url, f.depth, f.outcome, f.reason, f.by_settings, f.redirect_to, f.reached, f.document_id, held.content_id,
       d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.verified_at,
       v.id AS version_id, v.content_id AS content_now, v.content_type, v.canonical
  FROM versions v
  JOIN frontier f ON f.job_id = :job AND f.url = v.url AND f.outcome IN ('new', 'changed', 'unchanged') AND NOT f.renews
  JOIN documents d ON d.id = v.document_id
  LEFT JOIN versions held ON held.id = f.version_id
 WHERE v.source_id = :source AND v.canonical IS NOT NULL AND v.died IS NULL
   AND (v.born = :generation
        OR NOT EXISTS (SELECT 1 FROM versions newer
                        WHERE newer.document_id = v.document_id AND newer.born = :generation))
UNION ALL
SELECT f.url, f.depth, f.outcome, f.reason, f.by_settings, f.redirect_to, f.reached, f.document_id, v.content_id,
       d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.verified_at,
       v.id, v.content_id, v.content_type, f.canonical
  FROM frontier f
  JOIN versions v ON v.id = f.version_id
  JOIN documents d ON d.id = v.document_id
 WHERE f.job_id = :job AND f.renews AND f.canonical IS NOT NULL;

-- name: entry
SELECT * FROM frontier WHERE job_id = :job AND url = :url;

-- name: relabel_entry
UPDATE frontier SET outcome = :outcome, reason = :reason, document_id = :document WHERE job_id = :job AND url = :url;

-- name: ledger
-- What the last full crawl of each source, and those after it, made of a URL; the latest first.
SELECT f.*, j.source_id, j.mode, j.status, s.name AS source_name, s.version AS source_version
  FROM frontier f
  JOIN crawl_jobs j ON j.id = f.job_id
  JOIN sources s ON s.id = j.source_id AND s.removed_at IS NULL
 WHERE f.url = :url
   AND NOT EXISTS (SELECT 1 FROM crawl_jobs later
                    WHERE later.source_id = j.source_id AND later.status = 'completed'
                      AND later.mode IN ('refresh', 'full') AND later.created_at > j.created_at)
 ORDER BY j.created_at DESC;

-- name: shown_unmentioned
-- What the last crawl of a source that lists everything found unchanged, in the form of the ledger.
SELECT s.id AS source_id, s.name AS source_name, s.version AS source_version, a.url, 'unchanged' AS outcome, NULL AS reason,
       NULL AS http_status, 0 AS attempts, v.depth, NULL AS parent_url, j.started_at AS visited_at
  FROM documents_active a
  JOIN versions v ON v.id = a.version_id
  JOIN sources s ON s.id = a.source_id
  JOIN generations g ON g.source_id = s.id AND g.number = s.active_generation
  JOIN crawl_jobs j ON j.id = g.job_id AND j.lists_everything
 WHERE a.url = :url AND NOT EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = j.id AND f.url = a.url);

-- name: not_kept
-- The URLs that a crawl did not keep, and no later one did: by outcome and reason, how many, and the first :limit of each.
-- Reasons that name another URL count as one.
WITH told AS (
  SELECT f.url, f.outcome,
         CASE WHEN f.redirect_to IS NOT NULL THEN 'redirects to another page'
              WHEN f.reason LIKE 'redirects out of the source to %' THEN 'redirects out of the source'
              WHEN f.reason LIKE 'redirects in a circle%' THEN 'redirects in a circle'
              ELSE COALESCE(f.reason, '') END AS reason
    FROM frontier f
    JOIN crawl_jobs j ON j.id = f.job_id
   WHERE f.job_id = :job AND f.outcome IN ('moved', 'gone', 'failed', 'skipped') AND f.outcome <> 'moved'
     AND NOT EXISTS (SELECT 1 FROM crawl_jobs later
                       JOIN frontier again ON again.job_id = later.id AND again.url = f.url
                      WHERE later.source_id = j.source_id AND later.created_at > j.created_at
                        AND again.outcome IN ('new', 'changed', 'unchanged', 'moved'))
), numbered AS (
  SELECT url, outcome, reason, count(*) OVER (PARTITION BY outcome, reason) AS urls,
         row_number() OVER (PARTITION BY outcome, reason ORDER BY url) AS place
    FROM told
)
SELECT url, outcome, reason, urls FROM numbered WHERE place <= :limit ORDER BY urls DESC, outcome, reason, place;

-- name: finished_frontiers
-- Jobs whose frontier is no longer the ledger of their source: a later crawl that saw as much has taken its place. Of
-- those that came to nothing only the last is kept: it says why.
SELECT j.id FROM crawl_jobs j
 WHERE j.source_id = :source AND j.status IN ('completed', 'failed', 'cancelled')
   AND EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = j.id)
   AND EXISTS (SELECT 1 FROM crawl_jobs later
                WHERE later.source_id = j.source_id AND later.created_at > j.created_at
                  AND CASE WHEN later.status = 'completed' THEN later.mode IN ('refresh', 'full') OR j.status <> 'completed'
                                                               OR (later.mode = 'failed' AND j.mode = 'failed')
                           WHEN later.status IN ('failed', 'cancelled') THEN j.status <> 'completed'
                           ELSE FALSE END)
   AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.job_id = j.id AND g.state IN ('building', 'held'));

-- name: delete_entries
DELETE FROM frontier WHERE id IN (SELECT id FROM frontier WHERE job_id = :job LIMIT :limit);
