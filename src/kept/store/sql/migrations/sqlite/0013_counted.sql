-- Progress is counted from the frontier, at most once a second: up to which batch, and when.
ALTER TABLE crawl_jobs ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE crawl_jobs ADD COLUMN counted_at TEXT;
UPDATE crawl_jobs SET counted = batch;
