-- name: begin_pass
-- Touches no row if it was begun within so many seconds. Two that begin at once take turns.
INSERT INTO passes (name, begun_at) VALUES (:name, now())
    ON CONFLICT (name) DO UPDATE SET begun_at = now() WHERE passes.begun_at < ago(:seconds) OR passes.begun_at > now();
