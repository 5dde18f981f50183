-- name: delete_sections_of_contents
DELETE FROM sections WHERE content_id {in :contents};

-- name: sections_of_content
SELECT id, parent_section_id, position, level, heading, headings, anchor, text, entry, entries
  FROM sections WHERE content_id = :content ORDER BY position;

-- name: count_sections
SELECT count(*) AS sections
  FROM documents_active d JOIN sections s ON s.content_id = d.content_id
 WHERE d.source_id = :source;
