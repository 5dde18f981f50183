-- A document keeps the doc_id of the manifest that it was imported from.

ALTER TABLE documents ADD COLUMN former_id TEXT;

CREATE INDEX documents_by_former_id ON documents (former_id) WHERE former_id IS NOT NULL;
