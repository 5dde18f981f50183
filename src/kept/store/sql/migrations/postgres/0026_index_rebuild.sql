-- Flags, operators and names with signs are tokens of the index. What is indexed already is rebuilt in the background:
-- contents above "done", up to "last".
CREATE TABLE index_rebuild (done BIGINT NOT NULL, last BIGINT NOT NULL);

INSERT INTO index_rebuild SELECT 0, max(id) FROM contents HAVING max(id) IS NOT NULL;
