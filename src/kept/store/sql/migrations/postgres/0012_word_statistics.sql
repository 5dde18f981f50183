-- How common each word is, as ANALYZE counts it: ranking weighs words by that, and autovacuum takes its time. Done if it
-- was never done, or if much has changed since.
CREATE FUNCTION renew_word_statistics() RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_stats
                    WHERE schemaname = current_schema AND tablename = 'sections' AND attname = 'words')
       OR EXISTS (SELECT 1 FROM pg_stat_user_tables
                   WHERE relid = 'sections'::regclass AND n_mod_since_analyze > 100 + n_live_tup / 5) THEN
        ANALYZE sections (words);
    END IF;
END $$;
