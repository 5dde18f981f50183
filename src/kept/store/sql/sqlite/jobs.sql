-- name: lock_host
-- Nothing to lock: only one transaction writes at a time.
SELECT :host AS host;
