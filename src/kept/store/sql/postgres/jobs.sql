-- name: live_job
SELECT * FROM crawl_jobs WHERE source_id = :source AND status IN ('pending', 'processing', 'paused') FOR UPDATE;

-- name: claim_job
-- The first job that is due (or the one named), now held by :worker. No row: nothing is due.
UPDATE crawl_jobs
   SET status = 'processing', worker_id = :worker, attempt = attempt + 1,
       started_at = COALESCE(started_at, now()), last_heartbeat = now()
 WHERE id = (SELECT id FROM crawl_jobs
              WHERE status = 'pending' AND run_after <= now() AND id = COALESCE(CAST(:job AS uuid), id)
              ORDER BY priority DESC, created_at LIMIT 1
                FOR UPDATE SKIP LOCKED)
RETURNING *;

-- name: lock_job
SELECT * FROM crawl_jobs WHERE id = :id FOR UPDATE;

-- name: hold_place
-- The fence: it locks, so that nobody can reap this worker while it writes. No row: it was reaped, and may write nothing.
SELECT attempt FROM job_workers WHERE id = :worker FOR UPDATE;
