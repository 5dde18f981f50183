-- name: insert_section
INSERT INTO sections (id, content_id, parent_section_id, position, level, heading, headings, anchor, text, words)
SELECT r.id, r.content, r.parent, r.position, r.level, r.heading, r.headings, r.anchor, r.text,
       setweight(to_tsvector('english', r.title), 'A') || setweight(to_tsvector('english', r.headings), 'B')
       || setweight(to_tsvector('english', r.text), 'D')
  FROM unnest(:id::bigint[], :content::bigint[], :parent::bigint[], :position::bigint[], :level::bigint[],
              :heading::text[], :headings::text[], :anchor::text[], :text::text[], :title::text[])
       AS r (id, content, parent, position, level, heading, headings, anchor, text, title)
 ORDER BY r.id
ON CONFLICT (id) DO NOTHING;

-- name: index_sections
-- Nothing is left to do: here the words are a column of the section.
SELECT WHERE :contents::bigint[] IS NULL;

-- name: search_sections_fts
-- Section ids, best first. Title and headings weigh more than text; a long section does not win by its length.
SELECT id, ts_rank('{0.1, 0.2, 0.4, 0.6}', words, to_tsquery('english', :query), 1) AS score
  FROM sections
 WHERE words @@ to_tsquery('english', :query)
 ORDER BY score DESC, id
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
  JOIN (SELECT CAST(value->>0 AS uuid) AS source_id, CAST(value->>1 AS bigint) AS number
          FROM jsonb_array_elements(CAST(:generations AS jsonb)) AS value) shown
    ON shown.source_id = v.source_id AND v.born <= shown.number AND (v.died IS NULL OR v.died > shown.number)
  JOIN generations g ON g.source_id = v.source_id AND g.number = shown.number
  JOIN sources src ON src.id = v.source_id
  JOIN documents d ON d.id = v.document_id
 WHERE s.id = ANY(:ids);
