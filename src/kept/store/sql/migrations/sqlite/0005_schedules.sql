-- Sources are refreshed by schedules, some refreshes are quick, and others are told what came of it.

ALTER TABLE sources ADD COLUMN next_run_at TEXT;

ALTER TABLE sources ADD COLUMN runs INTEGER NOT NULL DEFAULT 0; -- of its schedule: every so many is a full one

ALTER TABLE sources ADD COLUMN validators_wrong_at TEXT; -- a page had changed, and its validators had not

CREATE INDEX sources_by_next_run ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

-- A new list for a CHECK means a new column. The table itself stays where it is: to drop it would take the frontier along.
ALTER TABLE crawl_jobs RENAME COLUMN mode TO former_mode;

ALTER TABLE crawl_jobs ADD COLUMN mode TEXT NOT NULL DEFAULT 'refresh' CHECK (mode IN ('failed', 'quick', 'refresh', 'full'));

UPDATE crawl_jobs SET mode = former_mode;

ALTER TABLE crawl_jobs DROP COLUMN former_mode;

ALTER TABLE crawl_jobs RENAME COLUMN again TO former_again;

ALTER TABLE crawl_jobs ADD COLUMN again TEXT CHECK (again IN ('failed', 'quick', 'refresh', 'full')); -- asked for while it ran

UPDATE crawl_jobs SET again = former_again;

ALTER TABLE crawl_jobs DROP COLUMN former_again;

-- How the crawl that made it looked; none for a rollback.
ALTER TABLE generations ADD COLUMN mode TEXT CHECK (mode IN ('failed', 'quick', 'refresh', 'full'));

UPDATE generations SET mode = (SELECT j.mode FROM crawl_jobs j WHERE j.id = generations.job_id);

-- What others are still to be told, written in the transaction that made it true. A row goes when it was delivered.
CREATE TABLE notices (
    id         TEXT PRIMARY KEY,
    source_id  TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    receiver   TEXT NOT NULL CHECK (receiver IN ('operator', 'source')), -- whose webhook
    event      TEXT NOT NULL CHECK (event IN ('activated', 'held', 'failed')),
    payload    TEXT NOT NULL,                               -- JSON
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    due_at     TEXT,                                        -- none: given up
    error      TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX notices_due ON notices (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX notices_of_source ON notices (source_id);
