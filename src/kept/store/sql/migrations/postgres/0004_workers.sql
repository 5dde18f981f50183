-- Many workers: how fast a job goes, who may ask a host how much, and a call that wakes whoever waits for work.

ALTER TABLE crawl_jobs ADD COLUMN claimed_at TIMESTAMPTZ;                  -- the last time that it began or went on

ALTER TABLE crawl_jobs ADD COLUMN done_before BIGINT NOT NULL DEFAULT 0;   -- what was done by then

-- What a place may ask of a host at once. It goes with the place; what is not renewed lapses.
CREATE TABLE host_shares (
    host       TEXT NOT NULL,
    place_id   UUID NOT NULL REFERENCES job_workers (id) ON DELETE CASCADE,
    at_once    BIGINT NOT NULL,                            -- what its source would have for all of them together
    slots      BIGINT NOT NULL,                            -- what it may use
    joined_at  TIMESTAMPTZ NOT NULL,
    renewed_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (host, place_id)
);

CREATE INDEX host_shares_of_place ON host_shares (place_id);

-- In the database, so that no way to a waiting job can forget it.
CREATE FUNCTION call_workers() RETURNS TRIGGER LANGUAGE plpgsql AS
$$BEGIN PERFORM pg_notify('kept_jobs', NEW.id::text); RETURN NULL; END$$;

CREATE TRIGGER job_waits AFTER INSERT OR UPDATE OF status ON crawl_jobs
    FOR EACH ROW WHEN (NEW.status = 'pending') EXECUTE FUNCTION call_workers();
