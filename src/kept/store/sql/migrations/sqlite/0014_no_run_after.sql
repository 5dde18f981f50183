-- A waiting job may run at once: what has to wait is a schedule.
ALTER TABLE crawl_jobs DROP COLUMN run_after;
