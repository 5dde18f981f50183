-- A version that ends without a successor says why. Of documents that are still removed the reason is known.

ALTER TABLE versions ADD COLUMN end_reason TEXT;

UPDATE versions
   SET end_reason = (SELECT d.reason FROM documents d
                      WHERE d.id = versions.document_id AND d.lifecycle IN ('missing', 'deleted'))
 WHERE died IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM versions newer
                    WHERE newer.document_id = versions.document_id AND newer.born > versions.born);
