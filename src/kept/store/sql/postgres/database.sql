-- name: describe_database
-- The program and the schema number, whether it is writable, and the version of the vector extension.
SELECT 'PostgreSQL ' || current_setting('server_version') AS program,
       (SELECT max(number) FROM migrations) AS schema_number,
       NOT pg_is_in_recovery() AND current_setting('default_transaction_read_only') = 'off' AS writable,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vectors;
