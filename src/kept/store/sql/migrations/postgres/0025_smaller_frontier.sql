-- A URL is looked up in the few jobs that still say something about it.

DROP INDEX frontier_by_url;
