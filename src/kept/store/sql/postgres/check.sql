-- name: store_problems
-- PostgreSQL looks after its files itself.
SELECT '' AS what WHERE FALSE LIMIT :limit;

-- name: sections_without_words
-- Here the words are a column: they have to be those of the section.
SELECT s.id, s.heading AS what FROM sections s
  JOIN contents c ON c.id = s.content_id
 WHERE s.words IS DISTINCT FROM setweight(to_tsvector('english', c.title), 'A')
       || setweight(to_tsvector('english', s.headings), 'B') || setweight(to_tsvector('english', s.text), 'D')
 ORDER BY s.id LIMIT :limit;

-- name: words_without_section
SELECT 0 AS id, '' AS what WHERE FALSE LIMIT :limit;
