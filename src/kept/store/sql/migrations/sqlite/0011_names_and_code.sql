-- Full text in four fields: what a section defines, where it stands, its prose, its code. What was kept before has its
-- code among its prose.

DROP TRIGGER section_deleted;

DROP TABLE section_words;

CREATE VIRTUAL TABLE section_words USING fts5 (
    names, headings, text, code,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

INSERT INTO section_words (rowid, names, headings, text, code)
SELECT s.id, s.heading || ' ' || COALESCE(s.anchor, ''), c.title || ' ' || s.headings, s.text, ''
  FROM sections s JOIN contents c ON c.id = s.content_id
 ORDER BY s.id;

CREATE TRIGGER section_deleted AFTER DELETE ON sections BEGIN
    DELETE FROM section_words WHERE rowid = old.id;
END;
