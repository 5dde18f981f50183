-- name: insert_job
-- The new job. No row: the source has a live one already.
INSERT INTO crawl_jobs (id, source_id, payload, mode, priority, created_at, user_id)
VALUES (:id, :source, :payload, :mode, :priority, now(), :user)
ON CONFLICT DO NOTHING
RETURNING *;

-- name: job
SELECT * FROM crawl_jobs WHERE id = :id;

-- name: jobs_before
-- A page of all jobs, the latest first: ids sort by the time they were made. Only those in one :status, if it is named.
SELECT j.*, s.name AS source_name, s.version AS source_version,
       (SELECT count(*) FROM job_workers w WHERE w.job_id = j.id) AS workers
  FROM crawl_jobs j JOIN sources s ON s.id = j.source_id
 WHERE s.removed_at IS NULL AND j.status = COALESCE(CAST(:status AS TEXT), j.status) AND j.id < :before
 ORDER BY j.id DESC
 LIMIT :limit;

-- name: jobs_beginning
-- Those whose id begins so; two are as good as many.
SELECT j.*, s.name AS source_name, s.version AS source_version,
       (SELECT count(*) FROM job_workers w WHERE w.job_id = j.id) AS workers
  FROM crawl_jobs j JOIN sources s ON s.id = j.source_id
 WHERE CAST(j.id AS TEXT) LIKE :beginning
 ORDER BY j.id LIMIT 2;

-- name: last_job
SELECT * FROM crawl_jobs WHERE source_id = :source ORDER BY created_at DESC, id DESC LIMIT 1;

-- name: join_job
-- A request that meets a waiting job joins it.
UPDATE crawl_jobs SET mode = :mode, priority = :priority WHERE id = :id AND status = 'pending' RETURNING *;

-- name: ask_again
-- A request that meets a running job is remembered: another crawl follows.
UPDATE crawl_jobs SET again = :mode WHERE id = :id AND status = 'processing' RETURNING *;

-- name: enter_job
-- A worker that claimed a job, or joins it, gets a row of its own.
INSERT INTO job_workers (id, job_id, name, host, pid, process_started, attempt, joined_at, last_heartbeat)
VALUES (:id, :job, :name, :host, :pid, :process_started, :attempt, now(), now());

-- name: leave_job
-- Its leases lapse with the row.
DELETE FROM job_workers WHERE id = :id;

-- name: hand_back
-- A job that nobody walks any more waits for the next worker. Handing back does not count as a failure.
UPDATE crawl_jobs SET status = 'pending'
 WHERE id = :job AND status = 'processing' AND NOT EXISTS (SELECT 1 FROM job_workers WHERE job_id = :job);

-- name: workers_of_job
SELECT * FROM job_workers WHERE job_id = :job ORDER BY joined_at;

-- name: workers_on_host
SELECT * FROM job_workers WHERE host = :host ORDER BY joined_at;

-- name: workers
-- A page of them, in the order of their ids.
SELECT * FROM job_workers WHERE id > :after ORDER BY id LIMIT :limit;

-- name: silent_workers
-- A page of those that were not heard of for so many seconds, by the clock of whoever asks.
SELECT * FROM job_workers WHERE id > :after AND last_heartbeat < ago(:seconds) ORDER BY id LIMIT :limit;

-- name: bury_worker
-- Touches no row when it was heard of meanwhile.
DELETE FROM job_workers WHERE id = :id AND attempt = :attempt AND beats = :beats;

-- name: deserted_jobs
-- Those that say somebody walks them, and nobody does.
SELECT id FROM crawl_jobs j
 WHERE status = 'processing' AND NOT EXISTS (SELECT 1 FROM job_workers w WHERE w.job_id = j.id)
 ORDER BY id LIMIT :limit;

-- name: place_now
-- Whether a worker still has its place, and what its job has come to.
SELECT j.status, w.attempt FROM crawl_jobs j LEFT JOIN job_workers w ON w.job_id = j.id AND w.id = :worker
 WHERE j.id = :job;

-- name: reap_job
-- Back to pending, or failed when its retries are spent. Touches no row while somebody walks it.
UPDATE crawl_jobs
   SET status = CASE WHEN retry_count < max_retries THEN 'pending' ELSE 'failed' END,
       error_message = CASE WHEN retry_count < max_retries THEN error_message ELSE CAST(:error AS TEXT) END,
       completed_at = CASE WHEN retry_count < max_retries THEN NULL ELSE now() END,
       retry_count = CASE WHEN retry_count < max_retries THEN retry_count + 1 ELSE retry_count END
 WHERE id = :job AND status = 'processing' AND NOT EXISTS (SELECT 1 FROM job_workers WHERE job_id = :job)
RETURNING *;

-- name: heartbeat
-- Touches no row when the worker was reaped.
UPDATE job_workers SET beats = beats + 1, last_heartbeat = now() WHERE id = :worker;

-- name: job_heartbeat
UPDATE crawl_jobs SET last_heartbeat = now() WHERE id = :job AND status = 'processing';

-- name: begin_generation
UPDATE crawl_jobs SET generation = :generation, discovered = :discovered, mode = :mode
 WHERE id = :id AND generation IS NULL;

-- name: mark_listed
UPDATE crawl_jobs SET listed = TRUE, lists_everything = :lists_everything, unlisted = :unlisted
 WHERE id = :id AND NOT listed;

-- name: number_batch
-- At the end of a batch: nobody else numbers one before it is committed. No row: the job was ended meanwhile, and nothing
-- of the batch is true. Paused, or even resumed by now: what was done by then counts. :unmentioned: unchanged, and in no
-- entry. :limited: it met a limit, which stays true.
UPDATE crawl_jobs
   SET batch = batch + 1, retry_count = 0, last_heartbeat = now(), discovered = discovered + :discovered,
       n_unchanged = n_unchanged + :unmentioned, bytes = bytes + :bytes, limited = limited OR :limited
 WHERE id = :job AND status IN ('pending', 'processing', 'paused')
RETURNING *;

-- name: count_progress
-- What was settled since it was last counted, unless that was less than :seconds ago; 0: now. A clock that was set back
-- keeps nothing waiting. The job is locked, so every batch up to its own number is committed.
UPDATE crawl_jobs
   SET n_new = n_new + f.new, n_changed = n_changed + f.changed, n_unchanged = n_unchanged + f.unchanged,
       n_moved = n_moved + f.moved, n_gone = n_gone + f.gone, n_failed = n_failed + f.failed,
       n_skipped = n_skipped + f.skipped,
       current_depth = CASE WHEN f.depth > current_depth THEN f.depth ELSE current_depth END,
       counted = batch, counted_at = now()
  FROM (SELECT count(*) FILTER (WHERE outcome = 'new') AS new,
               count(*) FILTER (WHERE outcome = 'changed') AS changed,
               count(*) FILTER (WHERE outcome = 'unchanged') AS unchanged,
               count(*) FILTER (WHERE outcome = 'moved') AS moved,
               count(*) FILTER (WHERE outcome = 'gone') AS gone,
               count(*) FILTER (WHERE outcome = 'failed') AS failed,
               count(*) FILTER (WHERE outcome = 'skipped') AS skipped,
               COALESCE(max(CASE WHEN visited_at IS NOT NULL THEN depth END), 0) AS depth
          FROM frontier
         WHERE job_id = :job AND batch IS NOT NULL AND batch > (SELECT counted FROM crawl_jobs WHERE id = :job)) AS f
 WHERE id = :job AND counted < batch
   AND (:seconds <= 0 OR counted_at IS NULL OR counted_at <= ago(:seconds) OR counted_at > now())
RETURNING *;

-- name: uncounted_new
SELECT count(*) AS entries FROM frontier
 WHERE job_id = :job AND batch IS NOT NULL AND batch > (SELECT counted FROM crawl_jobs WHERE id = :job) AND outcome = 'new';

-- name: complete_job
UPDATE crawl_jobs
   SET status = 'completed', completed_at = now(), held = :held, progress_percentage = 100, error_message = NULL,
       n_new = :new, n_changed = :changed, n_unchanged = :unchanged, n_moved = :moved, n_gone = :gone,
       n_failed = :failed, n_skipped = :skipped
 WHERE id = :id AND status = 'processing';

-- name: fail_job
UPDATE crawl_jobs SET status = 'failed', completed_at = now(), error_message = :error
 WHERE id = :id AND status IN ('pending', 'processing');

-- name: cancel_job
UPDATE crawl_jobs SET status = 'cancelled', completed_at = now()
 WHERE id = :id AND status IN ('pending', 'processing', 'paused');

-- name: pause_job
UPDATE crawl_jobs SET status = 'paused' WHERE id = :id AND status IN ('pending', 'processing');

-- name: resume_job
UPDATE crawl_jobs SET status = 'pending' WHERE id = :id AND status = 'paused';

-- name: ledger_job
-- The last crawl that visited everything, whose frontier is the ledger.
SELECT * FROM crawl_jobs WHERE source_id = :source AND status = 'completed' AND mode IN ('refresh', 'full')
 ORDER BY created_at DESC, id DESC LIMIT 1;
