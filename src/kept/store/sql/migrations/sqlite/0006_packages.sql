-- Published packages are sources too. A new list for a CHECK means a new column; the table itself stays where it is.
ALTER TABLE sources RENAME COLUMN kind TO former_kind;

ALTER TABLE sources ADD COLUMN kind TEXT NOT NULL DEFAULT 'web' CHECK (kind IN ('web', 'folder', 'git', 'package'));

UPDATE sources SET kind = former_kind;

ALTER TABLE sources DROP COLUMN former_kind;
