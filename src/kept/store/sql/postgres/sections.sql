-- name: insert_section
-- The word between two fields leaves a gap, so that no phrase begins in one field and ends in the next.
INSERT INTO sections (id, content_id, parent_section_id, position, level, heading, headings, anchor, text, entry, entries, words)
SELECT r.id, r.content, r.parent, r.position, r.level, r.heading, r.path, r.anchor, r.content_text, r.entry, r.entries,
       ts_delete(setweight(to_tsvector('kept', r.names || ' zqgap'), 'A')
                 || setweight(to_tsvector('kept', r.headings || ' zqgap'), 'B')
                 || setweight(to_tsvector('kept', r.code || ' zqgap'), 'C') || setweight(to_tsvector('kept', r.text), 'D'), 'zqgap')
  FROM unnest(:id::bigint[], :content::bigint[], :parent::bigint[], :position::bigint[], :level::bigint[],
              :heading::text[], :path::text[], :anchor::text[], :content_text::text[], :entry::text[], :entries::text[],
              :names::text[], :headings::text[], :code::text[], :text::text[])
       AS r (id, content, parent, position, level, heading, path, anchor, content_text, entry, entries, names, headings, code, text)
 ORDER BY r.id
ON CONFLICT (id) DO NOTHING;

-- name: index_section
-- Nothing to do: full text is a column of the section.
SELECT 1 FROM unnest(:id::bigint[]) LIMIT 0;

-- name: unindex_section
-- Nothing to do: reindex_section replaces it.
SELECT 1 FROM unnest(:id::bigint[]) LIMIT 0;

-- name: reindex_section
UPDATE sections s
   SET words = setweight(to_tsvector('kept', r.names), 'A') || setweight(to_tsvector('kept', r.headings), 'B')
           || setweight(to_tsvector('kept', r.code), 'C') || setweight(to_tsvector('kept', r.text), 'D')
  FROM unnest(:id::bigint[], :names::text[], :headings::text[], :code::text[], :text::text[])
       AS r (id, names, headings, code, text)
 WHERE s.id = r.id;

-- name: rare_terms
-- All of them: search_sections_fts itself searches by the rare ones.
SELECT :field::text || term AS term FROM unnest(:terms::text[]) AS term;

-- name: search_sections_fts
-- Section ids, best first, in an approximation of BM25: ts_rank of one term grows with its frequency and levels off; each
-- term counts by its rarity, according to the statistics of the column; length is normalised. Where any of the terms
-- suffices, sections are selected by the rare ones. Sections that define one of the :names are always among the
-- candidates; of the others 50,000 that have the words anywhere, because the index does not know whether they are adjacent
-- or in code. With :generations, only the sections that these show at a URL like :url: then there is no limit.
WITH lexemes AS MATERIALIZED (
    SELECT a.number, a.term, a.loose, own.word
      FROM unnest(:terms::text[], :loose::text[], :plain::text[]) WITH ORDINALITY AS a (term, loose, plain, number),
           unnest(tsvector_to_array(to_tsvector('kept', a.plain))) AS own (word)
), common AS MATERIALIZED (
    SELECT m.word, m.frequency
      FROM pg_stats p, unnest(p.most_common_elems::text::text[], p.most_common_elem_freqs) AS m (word, frequency)
     WHERE p.schemaname = current_schema AND p.tablename = 'sections' AND p.attname = 'words'
       AND m.word IN (SELECT word FROM lexemes)
), rated AS MATERIALIZED (
    SELECT to_tsquery('kept', l.term) AS term, to_tsquery('kept', l.loose) AS loose, l.number, min(c.frequency) AS frequency
      FROM lexemes l LEFT JOIN common c ON c.word = l.word
     GROUP BY l.number, l.term, l.loose
), counted AS MATERIALIZED ( -- a word that the statistics do not have is rare, or nowhere: it is counted
    SELECT term, loose, number, frequency, rows,
           COALESCE(frequency * rows, (SELECT count(*) FROM (SELECT 1 FROM sections s WHERE s.words @@ loose LIMIT 1001) AS found)) AS sections
      FROM rated, (SELECT GREATEST(reltuples, 1) AS rows FROM pg_class WHERE oid = 'sections'::regclass) AS all_sections
), weighted AS MATERIALIZED (
    SELECT term, loose, sections, ln(1 + COALESCE(1 / frequency, GREATEST(rows, 2000) / GREATEST(sections, 1))) AS weight,
           sum(sections) OVER (ORDER BY sections, number) AS together
      FROM counted
), searched AS MATERIALIZED (
    SELECT CAST(CASE WHEN :every THEN string_agg(term::text, ' & ')
                     ELSE string_agg(term::text, ' | ') FILTER (WHERE together = sections OR together <= 1000) END AS tsquery) AS terms,
           CAST(CASE WHEN :every THEN string_agg(format('(%s)', loose), ' & ')
                     ELSE string_agg(format('(%s)', loose), ' | ') FILTER (WHERE together = sections OR together <= 1000) END AS tsquery) AS loose,
           CAST(string_agg(term::text, ' | ') AS tsquery) AS any
      FROM weighted
), shown AS MATERIALIZED (
    SELECT v.content_id
      FROM jsonb_array_elements(:generations::jsonb) AS g (value)
      JOIN versions v ON v.source_id = CAST(g.value ->> 0 AS uuid) AND NOT v.pending
                     AND v.born <= CAST(g.value ->> 1 AS bigint)
                     AND (v.died IS NULL OR v.died > CAST(g.value ->> 1 AS bigint))
     WHERE v.url LIKE :url ESCAPE '!'
), matching AS (
    (SELECT s.id, s.words FROM sections s
      WHERE :names <> '' AND s.words @@ (to_tsquery('kept', :names) && to_tsquery('kept', :also))
      LIMIT 1000)
    UNION ALL
    (SELECT l.id, l.words
       FROM searched,
            (SELECT s.id, s.words FROM searched, sections s WHERE s.words @@ (searched.loose && to_tsquery('kept', :also))
              LIMIT CASE WHEN :generations::jsonb IS NULL THEN 50000 END) AS l
      WHERE (:generations::jsonb IS NULL OR l.id >> 20 IN (SELECT content_id FROM shown))
        AND l.words @@ searched.terms
      LIMIT CASE WHEN :generations::jsonb IS NOT NULL THEN NULL WHEN :every THEN 10000 ELSE 3000 END)
), best AS MATERIALIZED (
    SELECT m.id, m.words
      FROM searched, matching m
     WHERE :generations::jsonb IS NULL OR m.id >> 20 IN (SELECT content_id FROM shown)
     ORDER BY ts_rank('{0.3, 0.25, 0.6, 1}', m.words, searched.any || to_tsquery('kept', :names), 1) DESC
     LIMIT 4 * :limit
), found AS MATERIALIZED ( -- decompressed once, not for each term
    SELECT DISTINCT ON (id) id, words || ''::tsvector AS words FROM best
)
SELECT f.id, (COALESCE((SELECT sum(a.weight * ts_rank('{0.3, 0.25, 0.6, 1}', f.words, a.term)) FROM weighted a), 0)
              + 12 * ts_rank('{0.3, 0.25, 0.6, 1}', f.words, to_tsquery('kept', :names)))
             / (0.7 + 0.3 * length(f.words) / 80.0) AS score
  FROM found f
 ORDER BY score DESC, f.id
 LIMIT :limit;

-- name: count_sections_with_terms
-- How many sections match each query, up to a limit.
SELECT q.value AS query,
       (SELECT count(*) FROM (SELECT 1 FROM sections s WHERE s.words @@ to_tsquery('kept', q.value) LIMIT :limit) AS found)
           AS sections
  FROM unnest(:queries::text[]) AS q (value);

-- name: sample_sections
-- Ids of some sections that match the first of the terms, in no order.
SELECT id FROM sections WHERE words @@ to_tsquery('kept', (:terms::text[])[1]) LIMIT :limit;

-- name: sections_in_generations
-- The documents that show these sections in the :generations (source, number); NULL: in the active ones.
WITH shown AS MATERIALIZED (
    SELECT g.source_id, g.number, g.partial, src.root, src.name, src.version,
           count(*) OVER (PARTITION BY src.name) AS versions
      FROM jsonb_array_elements(COALESCE(CAST(:generations AS jsonb), (
               SELECT jsonb_agg(jsonb_build_array(id, active_generation)) FROM sources
                WHERE removed_at IS NULL AND active_generation IS NOT NULL))) AS pair (value)
      JOIN generations g ON g.source_id = CAST(pair.value ->> 0 AS uuid) AND g.number = CAST(pair.value ->> 1 AS bigint)
      JOIN sources src ON src.id = g.source_id
)
SELECT s.id, s.position, s.heading, s.headings, s.anchor, s.text, s.entry, s.entries, c.title, c.kind, v.document_id,
       v.source_id, v.url, v.fetched_at,
       shown.root, shown.name AS source_name, shown.version AS source_version, shown.versions, shown.number AS generation,
       shown.partial,
       COALESCE(d.verified_at, (SELECT max(w.created_at) FROM generations w
                                 WHERE w.source_id = v.source_id AND w.whole AND w.activated_at IS NOT NULL
                                   AND w.number BETWEEN v.born AND shown.number), v.fetched_at) AS verified_at
  FROM sections s
  JOIN contents c ON c.id = s.content_id
 CROSS JOIN LATERAL ( -- OFFSET: by its content; PostgreSQL would begin with every version of a source
       SELECT * FROM versions v WHERE v.content_id = s.content_id AND NOT v.pending OFFSET 0) v
  JOIN shown ON shown.source_id = v.source_id AND v.born <= shown.number AND (v.died IS NULL OR v.died > shown.number)
  JOIN documents d ON d.id = v.document_id
 WHERE s.id = ANY(:ids);

-- name: refresh_term_statistics
-- Counted by ANALYZE, where that is due.
SELECT refresh_term_statistics();
