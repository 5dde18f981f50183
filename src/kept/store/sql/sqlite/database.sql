-- name: describe_database
-- The program and the schema number, whether it is writable, and the version of the vector extension.
SELECT 'SQLite ' || sqlite_version() AS program, (SELECT max(number) FROM migrations) AS schema_number,
       1 AS writable, NULL AS vectors;
