-- A job whose run was interrupted by the database waits before the next one.

ALTER TABLE crawl_jobs ADD COLUMN due_at TIMESTAMPTZ;

-- The crawl that follows has the priority and the owner of the request for it.

ALTER TABLE crawl_jobs ADD COLUMN again_priority BIGINT NOT NULL DEFAULT 0;

ALTER TABLE crawl_jobs ADD COLUMN again_user_id TEXT;
