-- name: store_problems
-- PostgreSQL looks after its files itself.
SELECT '' AS what WHERE FALSE LIMIT :limit;

-- name: sections_without_words
-- Here the words are a column: they have to be those of the section. Code, links and what is not ASCII are indexed in a
-- form of their own, so of a section with any of these it is only seen that it has words at all.
SELECT s.id, s.heading AS what FROM sections s
 WHERE s.words IS NULL
    OR (s.text ~ '[A-Za-z0-9]' AND length(s.words) = 0)
    OR (ts_filter(s.words, '{c,d}') <> ts_filter(section_words('', '', '', s.text), '{d}')
        AND s.text NOT LIKE '%](%' AND s.text NOT LIKE '%```%' AND s.text NOT LIKE '%~~~%' AND s.text !~ '[^\x01-\x7f]')
 ORDER BY s.id LIMIT :limit;

-- name: words_without_section
SELECT 0 AS id, '' AS what WHERE FALSE LIMIT :limit;
