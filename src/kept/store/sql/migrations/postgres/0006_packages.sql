-- Published packages are sources too.
ALTER TABLE sources DROP CONSTRAINT sources_kind_check;

ALTER TABLE sources ADD CONSTRAINT sources_kind_check CHECK (kind IN ('web', 'folder', 'git', 'package'));
