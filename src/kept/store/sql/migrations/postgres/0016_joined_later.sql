-- A matter of SQLite's full text: nothing is left to do here.
SELECT 1;
