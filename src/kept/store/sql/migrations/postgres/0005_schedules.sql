-- Sources are refreshed by schedules, some refreshes are quick, and others are told what came of it.

ALTER TABLE sources ADD COLUMN next_run_at TIMESTAMPTZ;

ALTER TABLE sources ADD COLUMN runs INTEGER NOT NULL DEFAULT 0; -- of its schedule: every so many is a full one

ALTER TABLE sources ADD COLUMN validators_wrong_at TIMESTAMPTZ; -- a page had changed, and its validators had not

CREATE INDEX sources_by_next_run ON sources (next_run_at) WHERE next_run_at IS NOT NULL;

ALTER TABLE crawl_jobs DROP CONSTRAINT crawl_jobs_mode_check;

ALTER TABLE crawl_jobs ADD CONSTRAINT crawl_jobs_mode_check CHECK (mode IN ('failed', 'quick', 'refresh', 'full'));

ALTER TABLE crawl_jobs DROP CONSTRAINT crawl_jobs_again_check;

ALTER TABLE crawl_jobs ADD CONSTRAINT crawl_jobs_again_check CHECK (again IN ('failed', 'quick', 'refresh', 'full'));

-- How the crawl that made it looked; none for a rollback.
ALTER TABLE generations ADD COLUMN mode TEXT CHECK (mode IN ('failed', 'quick', 'refresh', 'full'));

UPDATE generations SET mode = (SELECT j.mode FROM crawl_jobs j WHERE j.id = generations.job_id);

-- What others are still to be told, written in the transaction that made it true. A row goes when it was delivered.
CREATE TABLE notices (
    id         UUID PRIMARY KEY,
    source_id  UUID NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    receiver   TEXT NOT NULL CHECK (receiver IN ('operator', 'source')), -- whose webhook
    event      TEXT NOT NULL CHECK (event IN ('activated', 'held', 'failed')),
    payload    JSONB NOT NULL,
    attempts   INTEGER NOT NULL DEFAULT 0,
    created_at TIMESTAMPTZ NOT NULL,
    due_at     TIMESTAMPTZ,                                     -- none: given up
    error      TEXT
);

CREATE INDEX notices_due ON notices (due_at, id) WHERE due_at IS NOT NULL;

CREATE INDEX notices_of_source ON notices (source_id);
