-- Full text in four fields: what a section defines (A), where it stands (B), its code (C), its prose (D). Every word
-- counts, and a word is a run of letters and digits: no parser may see a host, a file or a tag in an identifier. What
-- was kept before has its code among its prose.

CREATE TEXT SEARCH DICTIONARY kept_words (TEMPLATE = snowball, LANGUAGE = english);

CREATE TEXT SEARCH CONFIGURATION kept (COPY = simple);

ALTER TEXT SEARCH CONFIGURATION kept ALTER MAPPING FOR asciiword, word, numword WITH kept_words;

CREATE FUNCTION section_words(names TEXT, headings TEXT, code TEXT, prose TEXT) RETURNS TSVECTOR IMMUTABLE PARALLEL SAFE
RETURN setweight(to_tsvector('kept', translate(names, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'A')
    || setweight(to_tsvector('kept', translate(headings, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'B')
    || setweight(to_tsvector('kept', translate(code, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'C')
    || setweight(to_tsvector('kept', translate(prose, '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32))), 'D');

UPDATE sections SET words = section_words(heading || ' ' || COALESCE(anchor, ''), headings, '', text);
