-- name: store_problems
-- PostgreSQL looks after its files itself.
SELECT '' AS what WHERE FALSE LIMIT :limit;

-- name: sections_without_words
-- Here the words are a column: there are some wherever the section has any.
SELECT s.id, s.heading AS what FROM sections s
 WHERE s.words IS NULL OR (s.words = '' AND section_words(s.heading, s.headings, '', s.text) <> '')
 ORDER BY s.id LIMIT :limit;

-- name: words_without_section
SELECT 0 AS id, '' AS what WHERE FALSE LIMIT :limit;
