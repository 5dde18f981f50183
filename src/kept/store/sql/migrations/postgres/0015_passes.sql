-- Passes that one process makes for all: when each was begun last.
CREATE TABLE passes (
    name     TEXT PRIMARY KEY,
    begun_at TIMESTAMPTZ NOT NULL
);
