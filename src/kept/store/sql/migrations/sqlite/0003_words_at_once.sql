-- Full text is written once a batch, in the batch's transaction (index_sections), not once a row.
-- Rows still take their words with them when they go: section_deleted stays.

DROP TRIGGER section_inserted;
