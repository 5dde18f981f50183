-- name: about_database
-- Which program it is, at which schema; whether it can be written to; the version of what searches vectors.
SELECT 'SQLite ' || sqlite_version() AS program, (SELECT max(number) FROM migrations) AS schema_number,
       1 AS writable, NULL AS vectors;
