-- name: delete_sections_of_content
DELETE FROM sections WHERE content_id = :content;

-- name: sections_of_content
SELECT id, parent_section_id, position, level, heading, headings, anchor, text
  FROM sections WHERE content_id = :content ORDER BY position;

-- name: get_sections_by_document
-- The sections of a document as the active generation shows it.
SELECT s.id, s.parent_section_id, s.position, s.level, s.heading, s.headings, s.anchor, s.text
  FROM documents_active d
  JOIN sections s ON s.content_id = d.content_id
 WHERE d.id = :document
 ORDER BY s.position;

-- name: count_sections
SELECT count(*) AS sections
  FROM documents_active d JOIN sections s ON s.content_id = d.content_id
 WHERE d.source_id = :source;
