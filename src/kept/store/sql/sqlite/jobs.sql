-- name: live_job
SELECT * FROM crawl_jobs WHERE source_id = :source AND status IN ('pending', 'processing', 'paused');

-- name: claim_job
-- The first job that is due (or the one named), now held by :worker. No row: nothing is due.
UPDATE crawl_jobs
   SET status = 'processing', worker_id = :worker, attempt = attempt + 1,
       started_at = COALESCE(started_at, now()), last_heartbeat = now(), claimed_at = now(),
       done_before = n_new + n_changed + n_unchanged + n_moved + n_gone + n_failed + n_skipped
 WHERE id = (SELECT id FROM crawl_jobs
              WHERE status = 'pending' AND id = COALESCE(:job, id)
              ORDER BY priority DESC, created_at LIMIT 1)
RETURNING *;

-- name: lock_job
-- A transaction that writes is alone already.
SELECT * FROM crawl_jobs WHERE id = :id;

-- name: hold_place
-- The fence. No row: this worker was reaped, and may write nothing.
SELECT attempt FROM job_workers WHERE id = :worker;

-- name: joinable_job
-- A job that is listed and walked, with so many entries open for everybody who is there, and as many for one more; none
-- where this process is already, and none of :but.
SELECT j.id
  FROM crawl_jobs j
  JOIN (SELECT job_id, count(*) AS workers, max(CASE WHEN host = :host AND pid = :pid THEN 1 ELSE 0 END) AS here
          FROM job_workers GROUP BY job_id) AS w ON w.job_id = j.id AND w.here = 0
 WHERE j.status = 'processing' AND j.listed = TRUE AND NOT j.id IN (SELECT value FROM json_each(:but))
   AND (SELECT count(*) FROM (SELECT 1 FROM frontier f
                               WHERE f.job_id = j.id AND f.outcome IS NULL AND f.reached = TRUE AND f.due_at <= now()
                                 AND f.worker_id IS NULL
                               LIMIT :enough * 8) AS open) >= :enough * CASE WHEN w.workers > 8 THEN 8 ELSE w.workers END
 ORDER BY j.priority DESC, j.created_at LIMIT 1;
