-- A rollback pauses the source's schedule, so that the next scheduled crawl does not undo it.

ALTER TABLE sources ADD COLUMN schedule_paused_at TEXT;
