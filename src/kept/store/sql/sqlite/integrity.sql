-- name: engine_problems
-- The problems that SQLite itself finds in the file.
SELECT integrity_check AS what FROM pragma_integrity_check WHERE integrity_check <> 'ok'
UNION ALL
SELECT 'a row of ' || "table" || ' belongs to nothing in ' || parent FROM pragma_foreign_key_check
 LIMIT :limit;

-- name: sections_without_full_text
SELECT s.id, s.heading AS what FROM sections s
 WHERE NOT EXISTS (SELECT 1 FROM section_words_docsize w WHERE w.id = s.id)
 ORDER BY s.id LIMIT :limit;

-- name: full_text_without_section
SELECT w.id, '' AS what FROM section_words_docsize w
 WHERE NOT EXISTS (SELECT 1 FROM sections s WHERE s.id = w.id)
 ORDER BY w.id LIMIT :limit;
