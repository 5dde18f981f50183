-- name: lock_host
-- A transaction that writes is alone already.
SELECT :host AS host;
