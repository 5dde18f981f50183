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

-- name: pending_index_rebuild
SELECT done, last FROM index_rebuild;

-- name: lock_index_rebuild
SELECT done FROM index_rebuild {for update};

-- name: contents_to_rebuild
SELECT c.id FROM contents c, index_rebuild r WHERE c.id > r.done AND c.id <= r.last ORDER BY c.id LIMIT :limit;

-- name: advance_index_rebuild
UPDATE index_rebuild SET done = :done;

-- name: end_index_rebuild
DELETE FROM index_rebuild;
