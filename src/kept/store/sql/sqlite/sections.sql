-- name: insert_section
INSERT INTO sections (id, content_id, parent_section_id, position, level, heading, headings, anchor, text, entry, entries)
VALUES (:id, :content, :parent, :position, :level, :heading, :path, :anchor, :content_text, :entry, :entries);

-- name: index_section
-- After all rows of a batch: in turn with them, FTS5 would write a segment for each row.
INSERT INTO section_words (rowid, names, headings, text, code) VALUES (:id, :names, :headings, :text, :code);

-- name: unindex_section
DELETE FROM section_words WHERE rowid = :id;

-- name: reindex_section
INSERT INTO section_words (rowid, names, headings, text, code) VALUES (:id, :names, :headings, :text, :code);

-- name: rare_terms
-- The terms to search by where any of them suffices: the rarest, and as many others as together occur in at most ten
-- thousand sections.
WITH counted AS (
    SELECT t.key, t.value AS term,
           (SELECT count(*) FROM (SELECT 1 FROM section_words
                                   WHERE section_words MATCH :field || t.value LIMIT 10001)) AS sections
      FROM json_each(:terms) AS t
), rated AS (
    SELECT term, sections, sum(sections) OVER (ORDER BY sections, key) AS together FROM counted
)
SELECT term FROM rated WHERE together = sections OR together <= 10000;

-- name: search_sections_fts
-- Section ids, best first: defined names weigh most, then headings, prose, code. Sections that define one of the :names
-- are always among the candidates; of the others at most so many that no word is too common. With :generations, only
-- the sections that these show at a URL like :url.
WITH shown AS MATERIALIZED (
    SELECT v.content_id
      FROM json_each(:generations) AS g
     CROSS JOIN versions v ON v.source_id = g.value ->> 0 AND NOT v.pending AND v.born <= g.value ->> 1
                          AND (v.died IS NULL OR v.died > g.value ->> 1)
     WHERE v.url LIKE :url ESCAPE '!'
), matching AS (
    SELECT * FROM (
        SELECT rowid AS id, -bm25(section_words, 8.0, 4.0, 1.0, 0.7) AS score
          FROM section_words
         WHERE :names <> '' AND section_words MATCH :names
           AND (:generations IS NULL OR rowid >> 20 IN (SELECT content_id FROM shown))
         LIMIT 1000)
    UNION ALL
    SELECT * FROM (
        SELECT rowid AS id, -bm25(section_words, 8.0, 4.0, 1.0, 0.7) AS score
          FROM section_words
         WHERE section_words MATCH :terms
           AND (:generations IS NULL OR rowid >> 20 IN (SELECT content_id FROM shown))
         LIMIT 10000)
)
SELECT id, score FROM matching ORDER BY score DESC LIMIT :limit;

-- name: count_sections_with_terms
-- How many sections match each query, up to a limit.
SELECT q.value AS query,
       (SELECT count(*) FROM (SELECT 1 FROM section_words WHERE section_words MATCH q.value LIMIT :limit)) AS sections
  FROM json_each(:queries) AS q;

-- name: sample_sections
-- Ids of some sections that match the terms, in no order.
SELECT rowid AS id FROM section_words WHERE section_words MATCH :terms LIMIT :limit;

-- name: sections_in_generations
-- The documents that show these sections in the :generations (source, number); NULL: in the active ones.
WITH shown AS MATERIALIZED (
    SELECT g.source_id, g.number, g.partial, src.root, src.name, src.version,
           count(*) OVER (PARTITION BY src.name) AS versions
      FROM json_each(COALESCE(:generations, (SELECT json_group_array(json_array(id, active_generation)) FROM sources
                                              WHERE removed_at IS NULL AND active_generation IS NOT NULL))) AS pair
     CROSS JOIN generations g ON g.source_id = pair.value ->> 0 AND g.number = pair.value ->> 1
     CROSS JOIN sources src ON src.id = g.source_id
)
SELECT s.id, s.position, s.heading, s.headings, s.anchor, s.text, s.entry, s.entries, c.title, c.kind, v.document_id,
       v.source_id, v.url, v.fetched_at,
       shown.root, shown.name AS source_name, shown.version AS source_version, shown.versions, shown.number AS generation,
       shown.partial,
       COALESCE(d.verified_at, (SELECT max(w.created_at) FROM generations w
                                 WHERE w.source_id = v.source_id AND w.whole AND w.activated_at IS NOT NULL
                                   AND w.number BETWEEN v.born AND shown.number), v.fetched_at) AS verified_at
  FROM json_each(:ids) AS item -- CROSS keeps this order; SQLite would begin with every version of a source
 CROSS JOIN sections s ON s.id = item.value
 CROSS JOIN contents c ON c.id = s.content_id
 CROSS JOIN versions v ON v.content_id = s.content_id AND NOT v.pending
 CROSS JOIN shown ON shown.source_id = v.source_id AND v.born <= shown.number
                 AND (v.died IS NULL OR v.died > shown.number)
 CROSS JOIN documents d ON d.id = v.document_id;

-- name: refresh_term_statistics
-- Nothing to do: FTS5 counts as it goes.
SELECT 1 LIMIT 0;
