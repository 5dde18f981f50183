-- Most sections and their words fit into a page together. Packed, or kept elsewhere, they would take longer to store and
-- to search, and not much less room.
ALTER TABLE sections SET (toast_tuple_target = 8160);

-- They are packed already.
ALTER TABLE contents ALTER COLUMN markdown SET STORAGE EXTERNAL;
