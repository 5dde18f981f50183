-- Many workers: how fast a job goes, and who may ask a host how much.

ALTER TABLE crawl_jobs ADD COLUMN claimed_at TEXT;                         -- the last time that it began or went on

ALTER TABLE crawl_jobs ADD COLUMN done_before INTEGER NOT NULL DEFAULT 0;  -- what was done by then

-- What a place may ask of a host at once. It goes with the place; what is not renewed lapses.
CREATE TABLE host_shares (
    host       TEXT NOT NULL,
    place_id   TEXT NOT NULL REFERENCES job_workers (id) ON DELETE CASCADE,
    at_once    INTEGER NOT NULL,                           -- what its source would have for all of them together
    slots      INTEGER NOT NULL,                           -- what it may use
    joined_at  TEXT NOT NULL,
    renewed_at TEXT NOT NULL,
    PRIMARY KEY (host, place_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX host_shares_of_place ON host_shares (place_id);
