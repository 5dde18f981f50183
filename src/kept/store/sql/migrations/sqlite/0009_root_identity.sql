-- What tells a folder from another one that takes its place: device and inode, or its marker.

ALTER TABLE sources ADD COLUMN root_identity TEXT;
