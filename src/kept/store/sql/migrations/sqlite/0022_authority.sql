-- A source remembers who named it. What a key added is a caller's; the rest counts as the owner's.
ALTER TABLE sources ADD COLUMN authority TEXT NOT NULL DEFAULT 'owner' CHECK (authority IN ('owner', 'caller'));

UPDATE sources SET authority = 'caller' WHERE owner IS NOT NULL;
