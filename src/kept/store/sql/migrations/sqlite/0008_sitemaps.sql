-- A sitemap that calls pages modified which are not is no hint any more.

ALTER TABLE sources ADD COLUMN sitemap_wrong_at TEXT;
