-- name: delete_sections_of_contents
DELETE FROM sections WHERE content_id {in :contents};

-- name: sections_of_content
SELECT id, parent_section_id, position, level, heading, headings, anchor, text, entry, entries
  FROM sections WHERE content_id = :content ORDER BY position;

-- name: count_sections
-- How many sections the documents have that a source shows.
SELECT count(*) AS sections
  FROM sources src
  JOIN versions v ON v.source_id = src.id AND v.born <= src.active_generation
                 AND (v.died IS NULL OR v.died > src.active_generation)
  JOIN sections s ON s.content_id = v.content_id
 WHERE src.id = :source AND src.removed_at IS NULL;
