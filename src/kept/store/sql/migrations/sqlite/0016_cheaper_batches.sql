-- Full text is written in parts, which FTS5 joins as they become many: sixteen at a time, not four, so that each word is
-- written again less often. A part has the words of a whole batch.
INSERT INTO section_words (section_words, rank) VALUES ('hashsize', 4194304);

INSERT INTO section_words (section_words, rank) VALUES ('automerge', 16);

INSERT INTO section_words (section_words, rank) VALUES ('crisismerge', 32);
