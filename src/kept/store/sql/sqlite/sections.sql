-- name: insert_section
INSERT INTO sections (id, content_id, parent_section_id, position, level, heading, headings, anchor, text)
VALUES (:id, :content, :parent, :position, :level, :heading, :headings, :anchor, :text);

-- name: index_sections
-- The full text of new contents, all at once: row by row FTS5 would write each row's words by themselves.
INSERT INTO section_words (rowid, title, headings, text)
SELECT s.id, c.title, s.headings, s.text
  FROM json_each(:contents) AS new JOIN contents c ON c.id = new.value JOIN sections s ON s.content_id = c.id
 ORDER BY s.id;

-- name: search_sections_fts
-- Section ids, best first. Title and headings weigh more than text.
SELECT rowid AS id, -bm25(section_words, 6.0, 4.0, 1.0) AS score
  FROM section_words
 WHERE section_words MATCH :query
 ORDER BY score DESC
 LIMIT :limit;

-- name: sections_in_generations
-- Which of these sections are shown, by which document of which source; :generations says which number of which source.
SELECT s.id, s.heading, s.headings, s.anchor, s.text, c.title, d.id AS document_id, v.source_id, v.url, v.fetched_at,
       src.name AS source_name, src.version AS source_version, g.number AS generation, g.partial,
       COALESCE(d.verified_at, (SELECT max(w.created_at) FROM generations w
                                 WHERE w.source_id = v.source_id AND w.whole AND w.activated_at IS NOT NULL
                                   AND w.number BETWEEN v.born AND g.number), v.fetched_at) AS verified_at
  FROM sections s
  JOIN contents c ON c.id = s.content_id
  JOIN versions v ON v.content_id = s.content_id AND NOT v.pending
  JOIN (SELECT json_extract(value, '$[0]') AS source_id, json_extract(value, '$[1]') AS number
          FROM json_each(:generations)) shown
    ON shown.source_id = v.source_id AND v.born <= shown.number AND (v.died IS NULL OR v.died > shown.number)
  JOIN generations g ON g.source_id = v.source_id AND g.number = shown.number
  JOIN sources src ON src.id = v.source_id
  JOIN documents d ON d.id = v.document_id
 WHERE s.id IN (SELECT value FROM json_each(:ids));
