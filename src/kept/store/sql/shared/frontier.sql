-- name: entries_of_job
-- A page of a job's frontier, by URL. :outcome 'open': entries without an outcome; NULL: all.
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

-- name: entries_since
-- The finished entries of a job after an entry of one of its batches, in the order they were committed.
SELECT f.id, f.batch, f.url, f.outcome, f.reason, f.http_status, f.depth, f.document_id, f.redirect_to, f.visited_at,
       COALESCE(v.end_reason IS NOT NULL AND v.died = j.generation, FALSE) AS removed
  FROM frontier f
  JOIN crawl_jobs j ON j.id = f.job_id
  LEFT JOIN versions v ON v.id = f.version_id
 WHERE f.job_id = :job AND f.batch IS NOT NULL AND f.batch >= :batch AND (f.batch > :batch OR f.id > :entry)
   AND f.outcome IS NOT NULL
 ORDER BY f.batch, f.id
 LIMIT :limit;

-- name: seed_known
-- Every document that the base shows is visited, whether or not a link leads to it.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at)
SELECT :job, v.url, v.depth, FALSE, v.id, v.document_id, now()
  FROM versions v
 WHERE v.source_id = :source AND v.born <= :base AND (v.died IS NULL OR v.died > :base) AND NOT v.pending
 ORDER BY v.depth, v.url
ON CONFLICT (job_id, url) DO NOTHING;

-- name: seed_failed_entries
-- A repair visits what failed in the ledger: known documents and URLs that never gave content.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at)
SELECT :job, f.url, f.depth, TRUE, v.id, v.document_id, now()
  FROM frontier f
  LEFT JOIN versions v ON v.source_id = :source AND v.url = f.url AND v.died IS NULL AND NOT v.pending
 WHERE f.job_id = :ledger AND f.outcome = 'failed'
 ORDER BY f.url
ON CONFLICT (job_id, url) DO NOTHING;

-- name: unrepaired_entries
-- What failed in the ledger and failed again in the last repair since: at most one, to see whether there is any. Each
-- repair visits all that failed in the ledger, so that the last one is the whole truth.
SELECT id FROM frontier
 WHERE outcome = 'failed'
   AND job_id = COALESCE((SELECT repair.id FROM crawl_jobs repair
                           WHERE repair.source_id = :source AND repair.mode = 'failed' AND repair.status = 'completed'
                             AND repair.generation IS NOT NULL AND NOT repair.held
                             AND repair.created_at > (SELECT created_at FROM crawl_jobs WHERE id = :ledger)
                           ORDER BY repair.created_at DESC, repair.id DESC LIMIT 1), {:ledger as uuid})
 LIMIT 1;

-- name: seed_error_documents
-- Known documents that are in error, from any crawl.
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at)
SELECT :job, v.url, v.depth, TRUE, v.id, v.document_id, now()
  FROM documents d
  JOIN versions v ON v.document_id = d.id AND v.died IS NULL AND NOT v.pending
 WHERE d.source_id = :source AND d.lifecycle = 'error' AND (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL)
 ORDER BY v.url
ON CONFLICT (job_id, url) DO NOTHING;

-- name: change_counts
-- Visible documents with more than one version: how often they changed, as far as their history is kept.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.fetched_at, min(former.fetched_at) AS known_since,
       count(*) - sum(CASE WHEN former.read_again THEN 1 ELSE 0 END) - max(CASE WHEN v.read_again THEN 1 ELSE 0 END) AS changes
  FROM versions former
  JOIN versions v ON v.document_id = former.document_id AND v.died IS NULL AND NOT v.pending
 WHERE former.source_id = :source AND former.died IS NOT NULL
 GROUP BY v.id, v.document_id, v.url, v.depth, v.fetched_at;

-- name: set_moved_document
-- A link led here before the redirect of a document did: from now on no limit keeps it out.
UPDATE frontier SET document_id = :document
 WHERE job_id = :job AND url = :url AND outcome IS NULL AND document_id IS NULL;

-- name: insert_listed_entry
-- An entry of an origin that lists everything. With an outcome there is nothing to visit: its validators are those stored.
WITH {rows job uuid, url text, depth bigint, version bigint, document uuid, outcome text, reason text, by_settings boolean,
      redirect_to text, batch bigint}
INSERT INTO frontier (job_id, url, depth, reached, version_id, document_id, due_at, outcome, reason, by_settings,
                      redirect_to, visited_at, batch)
SELECT new.job, new.url, new.depth, TRUE, new.version, new.document, now(), new.outcome, new.reason, new.by_settings,
       new.redirect_to, CASE WHEN new.outcome IS NULL THEN NULL ELSE now() END, new.batch
  FROM new
 WHERE TRUE
 {postgres: ORDER BY new.url COLLATE "C"}
ON CONFLICT (job_id, url) DO NOTHING;

-- name: frontier_urls
SELECT url FROM frontier WHERE job_id = :job;

-- name: count_stored
SELECT count(*) AS pages FROM versions
 WHERE source_id = :source AND born <= :base AND (died IS NULL OR died > :base) AND NOT pending;

-- name: stored_etags
-- The version and ETag of what the base shows at these URLs. The ETag is NULL where it does not suffice: another :signature
-- read the page, it has other validators, or activation needs its entry, changed or not.
SELECT v.url, v.id,
       CASE WHEN v.signature = :signature AND v.last_modified IS NULL AND v.canonical IS NULL
             AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = v.document_id
                                AND (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL) {postgres: OFFSET 0})
            THEN v.etag END
  FROM {each :urls as text}
  {postgres: CROSS JOIN LATERAL (SELECT * FROM versions one WHERE one.source_id = :source AND one.url = item.value OFFSET 0) v}
  {sqlite: CROSS JOIN versions v INDEXED BY versions_by_url ON v.url = item.value}
 WHERE v.source_id = :source AND v.born <= :base AND (v.died IS NULL OR v.died > :base) AND NOT v.pending;

-- name: stored_urls
-- A page of what the base shows, by URL.
SELECT url, id FROM versions {sqlite: INDEXED BY versions_by_url}
 WHERE source_id = :source AND url > :after AND born <= :base AND (died IS NULL OR died > :base) AND NOT pending
 ORDER BY url LIMIT :limit;

-- name: stored_urls_over_limit
SELECT url FROM versions
 WHERE source_id = :source AND born <= :base AND (died IS NULL OR died > :base) AND NOT pending
 ORDER BY url {postgres: COLLATE "C"} LIMIT 1000000000 OFFSET :max_pages;

-- name: deferred_entries
-- Entries that wait for the guards' decision.
SELECT id, url, depth, family, document_id FROM frontier WHERE job_id = :job AND outcome IS NULL AND deferred = TRUE;

-- name: family_progress
-- How far a crawl has followed each family.
SELECT family, max(round) AS rounds, count(*) AS urls FROM frontier
 WHERE job_id = :job AND family IS NOT NULL AND round IS NOT NULL
 GROUP BY family;

-- name: admit_deferred
WITH {rows id bigint, round bigint}
UPDATE frontier SET deferred = FALSE, round = new.round FROM new WHERE frontier.id = new.id;

-- name: refuse_deferred
WITH {rows id bigint, reason text, batch bigint}
UPDATE frontier SET deferred = FALSE, outcome = 'skipped', reason = new.reason, by_settings = TRUE, batch = new.batch
  FROM new WHERE frontier.id = new.id;

-- name: skip_unreached_below
-- Documents that no visited page leads to, and that were too deep for the limit when they were last visited.
UPDATE frontier SET outcome = 'skipped', reason = :reason, by_settings = TRUE, batch = :batch
 WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = FALSE AND worker_id IS NULL AND depth > :max_depth;

-- name: skip_known_over_limit
-- Documents beyond a lowered limit: those that are closest to the root stay.
UPDATE frontier SET outcome = 'skipped', reason = :reason, by_settings = TRUE, batch = :batch
 WHERE id IN (SELECT id FROM frontier WHERE job_id = :job
               ORDER BY CASE WHEN url = :root THEN 0 ELSE 1 END, depth, url {postgres: COLLATE "C"}
               LIMIT 1000000000 OFFSET :max_pages);

-- name: trapped_urls
SELECT url FROM frontier
 WHERE job_id = :job AND outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link') AND outcome = 'skipped'
   AND reason LIKE 'trap: %';

-- name: has_trapped
SELECT 1 AS found FROM frontier
 WHERE job_id = :job AND outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link') AND outcome = 'skipped'
   AND reason LIKE 'trap: %'
 LIMIT 1;

-- name: count_frontier
SELECT count(*) AS entries FROM frontier WHERE job_id = :job;

-- name: retry_entry
-- To be tried again at :due_at.
UPDATE frontier SET worker_id = NULL, attempts = attempts + 1, due_at = :due_at, reason = :reason, http_status = :status
 WHERE job_id = :job AND url = :url;

-- name: open_entries
-- Whether open entries are left, reached, only known or deferred, and when the next one that is not leased is due.
SELECT EXISTS (SELECT 1 FROM frontier WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = TRUE)
         AS reached,
       EXISTS (SELECT 1 FROM frontier WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = FALSE)
         AS known,
       EXISTS (SELECT 1 FROM frontier WHERE job_id = :job AND outcome IS NULL AND deferred = TRUE) AS deferred,
       (SELECT due_at FROM frontier WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = TRUE
           AND worker_id IS NULL ORDER BY due_at LIMIT 1) AS due_reached,
       (SELECT due_at FROM frontier WHERE job_id = :job AND outcome IS NULL AND deferred = FALSE AND reached = FALSE
           AND worker_id IS NULL ORDER BY due_at LIMIT 1) AS due_known;

-- name: count_leased_new
SELECT count(*) AS entries FROM frontier
 WHERE worker_id IN (SELECT id FROM job_workers WHERE job_id = :job) AND outcome IS NULL AND version_id IS NULL;

-- name: release_entries
UPDATE frontier SET worker_id = NULL WHERE worker_id = :worker;

-- name: release_urls
UPDATE frontier SET worker_id = NULL WHERE job_id = :job AND url {in :urls};

-- name: leased_urls
SELECT url FROM frontier WHERE worker_id = :worker;

-- name: frontier_exceptions
SELECT f.url, f.depth, f.outcome, f.reason, f.by_settings, f.redirect_to, f.reached, f.document_id, f.version_id, v.content_id,
       d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.verified_at
  FROM frontier f
  LEFT JOIN versions v ON v.id = f.version_id
  LEFT JOIN documents d ON d.id = f.document_id
 WHERE f.job_id = :job AND f.outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link')
   AND (f.document_id IS NOT NULL OR f.redirect_to IS NOT NULL);

-- name: redirected_entries
-- What redirects to another URL, and what became of that one.
SELECT f.url, f.depth, f.reached, f.version_id, f.redirect_to, target.url AS target_url, target.outcome, target.reason,
       target.by_settings, target.visited_at, target.version_id AS target_version_id, target.document_id
  FROM frontier f
  LEFT JOIN frontier target ON target.job_id = f.job_id AND target.url = f.redirect_to
 WHERE f.job_id = :job AND f.outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link') AND f.redirect_to IS NOT NULL;

-- name: stored_links
SELECT id, links FROM versions WHERE id {in :ids};

-- name: unreached_documents
-- Known documents that still answer, but that no link leads to any more.
SELECT f.url, f.depth, f.outcome, f.reason, f.by_settings, f.redirect_to, f.reached, f.document_id, f.version_id, v.content_id,
       d.lifecycle, d.since, d.missed_crawls, d.retry_count, d.verified_at
  FROM frontier f
  JOIN versions v ON v.id = f.version_id
  JOIN documents d ON d.id = f.document_id
 WHERE f.job_id = :job AND NOT f.reached AND f.outcome IN ('unchanged', 'changed');

-- name: entries_with_canonical
-- Pages of this crawl that give another canonical URL: new or changed ones, unchanged ones, and those where only the
-- canonical URL changed.
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

-- name: set_outcome
-- In a batch of its own, so that readers of events see the final outcome.
UPDATE frontier SET outcome = :outcome, reason = :reason, document_id = :document, batch = :batch WHERE job_id = :job AND url = :url;

-- name: ledger_entries
-- The entries of a URL in the last full crawl of each source and in those after it, the latest first. These are few jobs,
-- each of which is looked into: an index of all URLs would cost each crawl more.
SELECT f.*, j.source_id, j.mode, j.status, s.name AS source_name, s.version AS source_version
  FROM sources s
  JOIN crawl_jobs j ON j.source_id = s.id
  JOIN frontier f ON f.job_id = j.id
 WHERE f.url = :url AND s.removed_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM crawl_jobs later
                    WHERE later.source_id = j.source_id AND later.status = 'completed'
                      AND later.mode IN ('refresh', 'full') AND later.created_at > j.created_at)
 ORDER BY j.created_at DESC;

-- name: unchanged_without_entry
-- A page that the last crawl of a source that lists everything found unchanged, with the columns of ledger_entries.
SELECT s.id AS source_id, s.name AS source_name, s.version AS source_version, a.url, 'unchanged' AS outcome, NULL AS reason,
       NULL AS http_status, 0 AS attempts, v.depth, NULL AS parent_url, j.started_at AS visited_at
  FROM documents_active a
  JOIN versions v ON v.id = a.version_id
  JOIN sources s ON s.id = a.source_id
  JOIN generations g ON g.source_id = s.id AND g.number = s.active_generation
  JOIN crawl_jobs j ON j.id = g.job_id AND j.lists_everything
 WHERE a.url = :url AND NOT EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = j.id AND f.url = a.url);

-- name: not_kept
-- The URLs that neither a crawl nor a later one kept: by outcome and reason, how many, and the first :limit of each.
-- Reasons that name another URL count as one.
WITH rejected AS (
  SELECT f.url, f.outcome, CASE WHEN f.outcome = 'dead_link' THEN f.parent_url END AS linked_from,
         CASE WHEN f.redirect_to IS NOT NULL THEN 'redirects to another page'
              WHEN f.reason LIKE 'redirects out of the source to %' THEN 'redirects out of the source'
              WHEN f.reason LIKE 'redirects in a circle%' THEN 'redirects in a circle'
              ELSE COALESCE(f.reason, '') END AS reason
    FROM frontier f
    JOIN crawl_jobs j ON j.id = f.job_id
   WHERE f.job_id = :job AND f.outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link') AND f.outcome <> 'moved'
     AND NOT EXISTS (SELECT 1 FROM crawl_jobs later
                       JOIN frontier again ON again.job_id = later.id AND again.url = f.url
                      WHERE later.source_id = j.source_id AND later.created_at > j.created_at
                        AND again.outcome IN ('new', 'changed', 'unchanged', 'moved'))
), numbered AS (
  SELECT url, outcome, reason, linked_from, count(*) OVER (PARTITION BY outcome, reason) AS urls,
         row_number() OVER (PARTITION BY outcome, reason ORDER BY url) AS position
    FROM rejected
)
SELECT url, outcome, reason, linked_from, urls FROM numbered WHERE position <= :limit
 ORDER BY urls DESC, outcome, reason, position;

-- name: superseded_frontiers
-- Ended jobs whose frontier is no longer the ledger of their source, because a later crawl covered as much. Of the failed
-- and cancelled ones only the last is kept, for its reasons.
SELECT j.id FROM crawl_jobs j
 WHERE j.source_id = :source AND j.status IN ('completed', 'failed', 'cancelled')
   AND EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = j.id {postgres: OFFSET 0})
   AND EXISTS (SELECT 1 FROM crawl_jobs later
                WHERE later.source_id = j.source_id AND later.created_at > j.created_at
                  AND CASE WHEN later.status = 'completed' THEN later.mode IN ('refresh', 'full') OR j.status <> 'completed'
                                                               OR (later.mode = 'failed' AND j.mode = 'failed' AND later.generation IS NOT NULL)
                           WHEN later.status IN ('failed', 'cancelled') THEN j.status <> 'completed'
                           ELSE FALSE END)
   AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.job_id = j.id AND g.state IN ('building', 'held'));

-- name: delete_entries
DELETE FROM frontier WHERE id IN (SELECT id FROM frontier WHERE job_id = :job LIMIT :limit);

-- name: jobs_with_frontier
-- The jobs of a source that have a frontier.
SELECT DISTINCT job_id FROM frontier WHERE job_id IN (SELECT id FROM crawl_jobs WHERE source_id = :source);

-- name: entries_by_id
SELECT f.url, f.depth, f.attempts, f.reached, v.id AS version_id, v.document_id, v.born, v.url AS held_url,
       v.content_type, v.etag, v.last_modified, v.raw_hash, v.signature, v.depth AS held_depth, v.links, v.canonical,
       v.fetched_at, c.hash AS content_hash
  FROM frontier f
  LEFT JOIN versions v ON v.id = f.version_id
  LEFT JOIN contents c ON c.id = v.content_id
 WHERE f.id {in :ids}
 ORDER BY f.due_at, f.id;

-- name: skip_new_entries
-- A limit was reached: URLs that are no documents yet are left out without a visit. An entry that another worker has
-- locked is left for the next time: that worker may be waiting for the job, which is locked here.
WITH free AS MATERIALIZED (
    SELECT id AS entry_id FROM frontier
     WHERE job_id = :job AND outcome IS NULL AND worker_id IS NULL AND document_id IS NULL
       {for update skip locked}
)
UPDATE frontier SET deferred = FALSE, outcome = 'skipped', reason = :reason, by_settings = TRUE, batch = :batch
  FROM free WHERE id = free.entry_id;

-- name: set_batch
UPDATE frontier SET batch = :batch WHERE job_id = :job AND url {in :urls};

-- name: stored_pages
-- These versions, as far as the list of a crawl needs them; and whether activation needs their entries, changed or not.
SELECT v.id AS version_id, v.document_id, v.url, v.depth, v.etag, v.last_modified, v.signature,
       (d.lifecycle <> 'active' OR d.verified_at IS NOT NULL OR v.canonical IS NOT NULL) AS needs_entry
  FROM versions v
  JOIN documents d ON d.id = v.document_id
 WHERE v.id {in :ids};

-- name: insert_entry
-- :document is the one that moved here by a redirect: no limit keeps it out. Only a repair or a quick crawl can be led to
-- a document that it did not begin with; a quick one visits it if it is :wanted. In the order of the URLs, so that two
-- workers cannot wait for each other.
WITH {rows job uuid, url text, depth bigint, parent text, document uuid, reached boolean, wanted boolean, family text,
      deferred boolean}
INSERT INTO frontier (job_id, url, depth, parent_url, reached, version_id, document_id, due_at, family, deferred)
SELECT new.job, new.url, new.depth, new.parent, new.reached, v.id, COALESCE(v.document_id, new.document), now(),
       new.family, new.deferred
  FROM new
 {sqlite: CROSS} JOIN crawl_jobs j ON j.id = new.job
  LEFT JOIN versions v ON j.mode IN ('failed', 'quick') AND v.source_id = j.source_id AND v.url = new.url
                      AND v.died IS NULL AND NOT v.pending
 WHERE j.mode <> 'quick' OR v.id IS NULL OR new.wanted
 {postgres: ORDER BY new.url COLLATE "C"}
ON CONFLICT (job_id, url) DO NOTHING;
