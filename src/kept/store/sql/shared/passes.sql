-- name: begin_pass
-- Touches no row if it was begun within so many seconds. Two that begin at once take turns.
INSERT INTO maintenance_passes (name, started_at) VALUES (:name, now())
    ON CONFLICT (name) DO UPDATE SET started_at = now() WHERE maintenance_passes.started_at < ago(:seconds) OR maintenance_passes.started_at > now();
