-- Guards defer entries; a link to what never was there is a dead link.

ALTER TABLE crawl_jobs ADD COLUMN n_dead_links BIGINT NOT NULL DEFAULT 0;

ALTER TABLE frontier ADD COLUMN family TEXT;

ALTER TABLE frontier ADD COLUMN deferred BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE frontier ADD COLUMN round BIGINT;

ALTER TABLE frontier DROP CONSTRAINT frontier_outcome_check;

ALTER TABLE frontier ADD CONSTRAINT frontier_outcome_check
    CHECK (outcome IN ('new', 'changed', 'unchanged', 'moved', 'gone', 'failed', 'skipped', 'dead_link'));

DROP INDEX frontier_unfinished;

CREATE INDEX frontier_unfinished ON frontier (job_id, deferred, reached, due_at, id) WHERE outcome IS NULL;

DROP INDEX frontier_exceptions;

CREATE INDEX frontier_exceptions ON frontier (job_id) WHERE outcome IN ('moved', 'gone', 'failed', 'skipped', 'dead_link');

CREATE INDEX frontier_by_family ON frontier (job_id, family) WHERE family IS NOT NULL;
