-- name: lock_host
SELECT pg_advisory_xact_lock(hashtextextended(:host, 0));
