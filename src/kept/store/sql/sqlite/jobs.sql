-- name: live_job
SELECT * FROM crawl_jobs WHERE source_id = :source AND status IN ('pending', 'processing', 'paused');

-- name: claim_job
-- The first job that is due (or the one named), now held by :worker. No row: nothing is due.
UPDATE crawl_jobs
   SET status = 'processing', worker_id = :worker, attempt = attempt + 1,
       started_at = COALESCE(started_at, now()), last_heartbeat = now()
 WHERE id = (SELECT id FROM crawl_jobs
              WHERE status = 'pending' AND run_after <= now() AND id = COALESCE(:job, id)
              ORDER BY priority DESC, created_at LIMIT 1)
RETURNING *;

-- name: lock_job
-- A transaction that writes is alone already.
SELECT * FROM crawl_jobs WHERE id = :id;

-- name: hold_place
-- The fence. No row: this worker was reaped, and may write nothing.
SELECT attempt FROM job_workers WHERE id = :worker;
