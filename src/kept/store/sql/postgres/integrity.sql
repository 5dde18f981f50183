-- name: engine_problems
-- None: PostgreSQL checks its files itself.
SELECT '' AS what WHERE FALSE LIMIT :limit;

-- name: sections_without_full_text
-- Full text is a column here: it must not be empty where the section has words.
SELECT s.id, s.heading AS what FROM sections s
 WHERE s.words IS NULL OR (s.words = '' AND section_words(s.heading, s.headings, '', s.text) <> '')
 ORDER BY s.id LIMIT :limit;

-- name: full_text_without_section
SELECT 0 AS id, '' AS what WHERE FALSE LIMIT :limit;
