-- FTS5 counts words as it goes: nothing is left to do here.
SELECT 1;
