-- The documents of a source are listed by URL in the order of an index.

DROP INDEX versions_by_url;

CREATE INDEX versions_by_url ON versions (source_id, url);
