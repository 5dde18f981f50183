-- name: live_or_recent_jobs
-- Jobs that are live, or ended since then; the oldest first.
SELECT j.*, s.name AS source_name, s.version AS source_version,
       (SELECT count(*) FROM job_workers w WHERE w.job_id = j.id) AS workers
  FROM crawl_jobs j JOIN sources s ON s.id = j.source_id
 WHERE j.status IN ('pending', 'processing', 'paused') OR j.completed_at >= :since
 ORDER BY j.id;

-- name: jobs_by_status
SELECT status, count(*) AS jobs FROM crawl_jobs GROUP BY status;

-- name: insert_job
-- The new job. No row: the source has a live one already.
INSERT INTO crawl_jobs (id, source_id, payload, mode, priority, created_at, user_id)
VALUES (:id, :source, :payload, :mode, :priority, now(), :user)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: job
SELECT * FROM crawl_jobs WHERE id = :id;

-- name: recent_jobs
-- A page of all jobs, the latest first: ids sort by time. Only those in one :status, unless it is NULL.
SELECT j.*, s.name AS source_name, s.version AS source_version,
       (SELECT count(*) FROM job_workers w WHERE w.job_id = j.id) AS workers
  FROM crawl_jobs j JOIN sources s ON s.id = j.source_id
 WHERE s.removed_at IS NULL AND j.status = COALESCE(CAST(:status AS TEXT), j.status) AND j.id < :before
 ORDER BY j.id DESC
 LIMIT :limit;

-- name: jobs_by_part_of_id
-- The jobs whose id begins or ends so; two suffice to see that it is ambiguous.
SELECT j.*, s.name AS source_name, s.version AS source_version,
       (SELECT count(*) FROM job_workers w WHERE w.job_id = j.id) AS workers
  FROM crawl_jobs j JOIN sources s ON s.id = j.source_id
 WHERE CAST(j.id AS TEXT) LIKE :beginning OR CAST(j.id AS TEXT) LIKE :ending
 ORDER BY j.id LIMIT 2;

-- name: last_job
SELECT * FROM crawl_jobs WHERE source_id = :source ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: merge_into_pending_job
-- A request that meets a pending job joins it.
UPDATE crawl_jobs SET mode = :mode, priority = :priority WHERE id = :id AND status = 'pending' RETURNING *;

-- name: request_rerun
-- A request that meets a running job is recorded: another crawl follows, with the highest priority that was asked for,
-- and for the first who asked.
UPDATE crawl_jobs
   SET again = :mode,
       again_priority = CASE WHEN again IS NOT NULL AND again_priority > :priority THEN again_priority ELSE :priority END,
       again_user_id = CASE WHEN again IS NULL THEN CAST(:user AS TEXT) ELSE again_user_id END
 WHERE id = :id AND status = 'processing' RETURNING *;

-- name: insert_follow_up
INSERT INTO crawl_jobs (id, source_id, payload, mode, priority, created_at, user_id)
SELECT {:id as uuid}, source_id, payload, again, again_priority, now(), again_user_id
  FROM crawl_jobs WHERE id = :job AND again IS NOT NULL
ON CONFLICT DO NOTHING;

-- name: collectable_jobs
-- Ended jobs of a source that are not among its last :keep. The last full crawl stays, whose frontier is the ledger, and so
-- does whatever has a frontier (see superseded_frontiers) or a generation that is not decided about.
SELECT j.id FROM crawl_jobs j
 WHERE j.source_id = :source AND j.status IN ('completed', 'failed', 'cancelled')
   AND j.created_at < (SELECT min(kept.created_at)
                         FROM (SELECT created_at FROM crawl_jobs WHERE source_id = :source
                                ORDER BY created_at DESC, id DESC LIMIT :keep) AS kept)
   AND (j.id {in :superseded as uuid} OR NOT EXISTS (SELECT 1 FROM frontier f WHERE f.job_id = j.id {postgres: OFFSET 0}))
   AND NOT EXISTS (SELECT 1 FROM generations g WHERE g.job_id = j.id AND g.state IN ('building', 'held'))
   AND j.id <> COALESCE((SELECT id FROM crawl_jobs
                          WHERE source_id = :source AND status = 'completed' AND mode IN ('refresh', 'full')
                          ORDER BY created_at DESC, id DESC LIMIT 1), :source)
 ORDER BY j.created_at LIMIT :limit;

-- name: delete_jobs
DELETE FROM crawl_jobs WHERE id {in :ids as uuid} AND status IN ('completed', 'failed', 'cancelled');

-- name: acquire_lease
-- Each worker that claims or joins a job has a row of its own.
INSERT INTO job_workers (id, job_id, name, host, pid, process_started, attempt, joined_at, last_heartbeat)
VALUES (:id, :job, :name, :host, :pid, :process_started, :attempt, now(), now());

-- name: release_lease
-- The entries that it holds are open again (ON DELETE SET NULL).
DELETE FROM job_workers WHERE id = :id;

-- name: requeue_if_unleased
-- A job without workers is pending again. This does not count as a failure.
UPDATE crawl_jobs SET status = 'pending', worker_id = NULL
 WHERE id = :job AND status = 'processing' AND NOT EXISTS (SELECT 1 FROM job_workers WHERE job_id = :job);

-- name: leases_of_job
SELECT * FROM job_workers WHERE job_id = :job ORDER BY joined_at;

-- name: leases_on_host
SELECT * FROM job_workers WHERE host = :host ORDER BY joined_at;

-- name: leases
-- A page of them, in the order of their ids.
SELECT * FROM job_workers WHERE id > :after ORDER BY id LIMIT :limit;

-- name: stale_leases
-- A page of those without a heartbeat for so many seconds, by the clock of the database (SQLite: of this process).
SELECT * FROM job_workers WHERE id > :after AND last_heartbeat < ago(:seconds) ORDER BY id LIMIT :limit;

-- name: revoke_lease
-- Changes no row if it had a heartbeat meanwhile.
DELETE FROM job_workers WHERE id = :id AND attempt = :attempt AND beats = :beats;

-- name: stalled_jobs
-- Jobs in processing whose workers are all gone.
SELECT id FROM crawl_jobs j
 WHERE status = 'processing' AND NOT EXISTS (SELECT 1 FROM job_workers w WHERE w.job_id = j.id)
 ORDER BY id LIMIT :limit;

-- name: status_if_leased
-- The attempt of a worker's lease, NULL if it is lost, and the status of its job.
SELECT j.status, w.attempt FROM crawl_jobs j LEFT JOIN job_workers w ON w.job_id = j.id AND w.id = :worker
 WHERE j.id = :job;

-- name: reap_job
-- Back to pending, not before :delay seconds have passed; or failed when its retries are spent. Changes no row while it
-- has workers.
UPDATE crawl_jobs
   SET status = CASE WHEN retry_count < max_retries THEN 'pending' ELSE 'failed' END,
       error_message = CAST(:error AS TEXT), worker_id = NULL,
       due_at = CASE WHEN retry_count < max_retries AND :delay > 0 THEN ago(-:delay) END,
       completed_at = CASE WHEN retry_count < max_retries THEN NULL ELSE now() END,
       retry_count = CASE WHEN retry_count < max_retries THEN retry_count + 1 ELSE retry_count END
 WHERE id = :job AND status = 'processing' AND NOT EXISTS (SELECT 1 FROM job_workers WHERE job_id = :job)
RETURNING *;

-- name: lease_heartbeat
-- Changes no row when the worker was reaped.
UPDATE job_workers SET beats = beats + 1, last_heartbeat = now() WHERE id = :worker;

-- name: job_heartbeat
UPDATE crawl_jobs SET last_heartbeat = now() WHERE id = :job AND status = 'processing';

-- name: set_job_generation
UPDATE crawl_jobs SET generation = :generation, discovered = :discovered, mode = :mode
 WHERE id = :id AND generation IS NULL;

-- name: revoke_other_leases
DELETE FROM job_workers WHERE job_id = :job AND id <> :worker;

-- name: delete_frontier
DELETE FROM frontier WHERE job_id = :job;

-- name: restart_job
-- Its frontier was lost: it starts again, with another generation.
UPDATE crawl_jobs
   SET generation = NULL, listed = FALSE, limited = FALSE, unlisted = FALSE, counted = batch, discovered = 0, bytes = 0,
       n_new = 0, n_changed = 0, n_unchanged = 0, n_moved = 0, n_gone = 0, n_failed = 0, n_skipped = 0, n_dead_links = 0,
       current_depth = 0, done_before = 0
 WHERE id = :id;

-- name: mark_listed
UPDATE crawl_jobs SET listed = TRUE, lists_everything = :lists_everything, unlisted = :unlisted
 WHERE id = :id AND NOT listed;

-- name: advance_batch
-- At the end of a batch: it locks the job, so that batches are numbered in the order of their commits. No row: the job
-- was ended meanwhile, and the batch must be rolled back. A job that was paused, or even resumed, still counts the batch.
-- :without_entry counts unchanged pages that have no entry. :limited: a limit was met, which stays true. :is_progress: the
-- batch settled or found something, so that earlier failures no longer count.
UPDATE crawl_jobs
   SET batch = batch + 1, last_heartbeat = now(),
       retry_count = CASE WHEN :is_progress THEN 0 ELSE retry_count END,
       error_message = CASE WHEN :is_progress THEN NULL ELSE error_message END, discovered = discovered + :discovered,
       n_unchanged = n_unchanged + :without_entry, bytes = bytes + :bytes, limited = limited OR :limited
 WHERE id = :job AND status IN ('pending', 'processing', 'paused')
RETURNING *;

-- name: update_progress
-- Adds what was settled since it was last counted, unless that was less than :seconds ago (0: always). A clock that was
-- set back delays nothing. The job is locked, so every batch up to its own number is committed.
UPDATE crawl_jobs
   SET n_new = n_new + f.new, n_changed = n_changed + f.changed, n_unchanged = n_unchanged + f.unchanged,
       n_moved = n_moved + f.moved, n_gone = n_gone + f.gone, n_failed = n_failed + f.failed,
       n_skipped = n_skipped + f.skipped, n_dead_links = n_dead_links + f.dead_links,
       current_depth = CASE WHEN f.depth > current_depth THEN f.depth ELSE current_depth END,
       progress_percentage = CASE
           WHEN discovered > 0 AND 100 * (n_new + n_changed + n_unchanged + n_moved + n_gone + n_failed + n_skipped + n_dead_links + f.settled)
                                   / discovered > progress_percentage
           THEN 100 * (n_new + n_changed + n_unchanged + n_moved + n_gone + n_failed + n_skipped + n_dead_links + f.settled) / discovered
           ELSE progress_percentage END,
       counted = batch, counted_at = now()
  FROM (SELECT count(*) FILTER (WHERE outcome = 'new') AS new,
               count(*) FILTER (WHERE outcome = 'changed') AS changed,
               count(*) FILTER (WHERE outcome = 'unchanged') AS unchanged,
               count(*) FILTER (WHERE outcome = 'moved') AS moved,
               count(*) FILTER (WHERE outcome = 'gone') AS gone,
               count(*) FILTER (WHERE outcome = 'failed') AS failed,
               count(*) FILTER (WHERE outcome = 'skipped') AS skipped,
               count(*) FILTER (WHERE outcome = 'dead_link') AS dead_links,
               count(outcome) AS settled,
               COALESCE(max(CASE WHEN visited_at IS NOT NULL THEN depth END), 0) AS depth
          FROM frontier
         WHERE job_id = :job AND batch IS NOT NULL AND batch > (SELECT counted FROM crawl_jobs WHERE id = :job)) AS f
 WHERE id = :job AND counted < batch
   AND (:seconds <= 0 OR counted_at IS NULL OR counted_at <= ago(:seconds) OR counted_at > now())
RETURNING *;

-- name: count_new_since_progress
SELECT count(*) AS entries FROM frontier
 WHERE job_id = :job AND batch IS NOT NULL AND batch > (SELECT counted FROM crawl_jobs WHERE id = :job) AND outcome = 'new';

-- name: complete_job
UPDATE crawl_jobs
   SET status = 'completed', completed_at = now(), held = :held, progress_percentage = 100, error_message = NULL,
       n_new = :new, n_changed = :changed, n_unchanged = :unchanged, n_moved = :moved, n_gone = :gone,
       n_failed = :failed, n_skipped = :skipped, n_dead_links = :dead_links, counted = batch
 WHERE id = :id AND status = 'processing';

-- name: fail_job
UPDATE crawl_jobs SET status = 'failed', completed_at = now(), error_message = :error
 WHERE id = :id AND status IN ('pending', 'processing');

-- name: set_job_warning
UPDATE crawl_jobs SET error_message = :warning WHERE id = :id AND status = 'processing';

-- name: cancel_job
UPDATE crawl_jobs SET status = 'cancelled', completed_at = now()
 WHERE id = :id AND status IN ('pending', 'processing', 'paused');

-- name: pause_job
UPDATE crawl_jobs SET status = 'paused' WHERE id = :id AND status IN ('pending', 'processing');

-- name: resume_job
UPDATE crawl_jobs SET status = 'pending', due_at = NULL WHERE id = :id AND status = 'paused';

-- name: last_full_crawl
-- The last crawl that visited everything; its frontier is the ledger.
SELECT * FROM crawl_jobs WHERE source_id = :source AND status = 'completed' AND mode IN ('refresh', 'full')
 ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: lock_live_job
SELECT * FROM crawl_jobs WHERE source_id = :source AND status IN ('pending', 'processing', 'paused') {for update};

-- name: claim_job
-- The first pending job (or the one named), now held by :worker. No row: none is pending.
UPDATE crawl_jobs
   SET status = 'processing', worker_id = :worker, attempt = attempt + 1, due_at = NULL,
       started_at = COALESCE(started_at, now()), last_heartbeat = now(), claimed_at = now(),
       done_before = n_new + n_changed + n_unchanged + n_moved + n_gone + n_failed + n_skipped + n_dead_links
 WHERE id = (SELECT id FROM crawl_jobs
              WHERE status = 'pending' AND id = COALESCE({:job as uuid}, id)
                -- No delay is an hour long: the clock of this machine was set back.
                AND (due_at IS NULL OR due_at <= now() OR due_at > ago(-3600) OR id = {:job as uuid})
              ORDER BY priority DESC, created_at LIMIT 1
              {for update skip locked})
RETURNING *;

-- name: lock_job
SELECT * FROM crawl_jobs WHERE id = :id {for update};

-- name: lock_lease
-- The fence: while it is locked, the reaper cannot delete it. No row: this worker was reaped, and may write nothing.
SELECT attempt FROM job_workers WHERE id = :worker {for update};

-- name: joinable_job
-- A job in processing with :enough open entries for each of its workers and for one more; none that this process works on
-- already, and none of :but.
SELECT j.id
  FROM crawl_jobs j
  JOIN (SELECT job_id, count(*) AS workers, max(CASE WHEN host = :host AND pid = :pid THEN 1 ELSE 0 END) AS here
          FROM job_workers GROUP BY job_id) AS w ON w.job_id = j.id AND w.here = 0
 WHERE j.status = 'processing' AND j.listed = TRUE AND NOT j.id {in :but as uuid}
   AND (SELECT count(*) FROM (SELECT 1 FROM frontier f
                               WHERE f.job_id = j.id AND f.outcome IS NULL AND f.deferred = FALSE AND f.reached = TRUE AND f.due_at <= now()
                                 AND f.worker_id IS NULL
                               LIMIT :enough * 8) AS open) >= :enough * CASE WHEN w.workers > 8 THEN 8 ELSE w.workers END
 ORDER BY j.priority DESC, j.created_at LIMIT 1;

-- name: host_shares
-- The oldest first: it keeps its slots when others join.
SELECT lease_id, concurrency, slots FROM host_shares
 WHERE host = :host AND renewed_at > ago(:seconds)
 ORDER BY joined_at, lease_id;

-- name: upsert_host_share
-- Changes no row when the worker was reaped.
INSERT INTO host_shares (host, lease_id, concurrency, slots, joined_at, renewed_at)
SELECT :host, id, :concurrency, :slots, now(), now() FROM job_workers WHERE id = :lease
ON CONFLICT (host, lease_id) DO UPDATE
   SET concurrency = excluded.concurrency, slots = excluded.slots, renewed_at = excluded.renewed_at;
