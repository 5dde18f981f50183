-- Internal tables, columns and functions get the names that the code uses.

ALTER TABLE notices RENAME TO notifications;

ALTER TABLE notifications RENAME CONSTRAINT notices_pkey TO notifications_pkey;

ALTER TABLE notifications RENAME CONSTRAINT notices_source_id_fkey TO notifications_source_id_fkey;

ALTER TABLE notifications RENAME CONSTRAINT notices_receiver_check TO notifications_receiver_check;

ALTER TABLE notifications RENAME CONSTRAINT notices_event_check TO notifications_event_check;

ALTER INDEX notices_due RENAME TO notifications_due;

ALTER INDEX notices_of_source RENAME TO notifications_of_source;

ALTER TABLE asked_once RENAME TO idempotency_keys;

ALTER TABLE idempotency_keys RENAME COLUMN asked_at TO created_at;

ALTER TABLE idempotency_keys RENAME CONSTRAINT asked_once_pkey TO idempotency_keys_pkey;

ALTER TABLE idempotency_keys RENAME CONSTRAINT asked_once_job_id_fkey TO idempotency_keys_job_id_fkey;

ALTER INDEX asked_once_by_job RENAME TO idempotency_keys_by_job;

ALTER INDEX asked_once_by_time RENAME TO idempotency_keys_by_time;

ALTER TABLE passes RENAME TO maintenance_passes;

ALTER TABLE maintenance_passes RENAME COLUMN begun_at TO started_at;

ALTER TABLE maintenance_passes RENAME CONSTRAINT passes_pkey TO maintenance_passes_pkey;

ALTER TABLE texts_taken RENAME TO embedding_claims;

ALTER TABLE embedding_claims RENAME CONSTRAINT texts_taken_pkey TO embedding_claims_pkey;

ALTER TABLE embedding_claims RENAME CONSTRAINT texts_taken_model_id_fkey TO embedding_claims_model_id_fkey;

ALTER TABLE host_shares RENAME COLUMN place_id TO lease_id;

ALTER TABLE host_shares RENAME COLUMN at_once TO concurrency;

ALTER TABLE host_shares RENAME CONSTRAINT host_shares_place_id_fkey TO host_shares_lease_id_fkey;

ALTER INDEX host_shares_of_place RENAME TO host_shares_of_lease;

ALTER FUNCTION call_workers RENAME TO notify_workers;

ALTER TRIGGER job_waits ON crawl_jobs RENAME TO job_pending;

ALTER FUNCTION note_unembedded RENAME TO queue_unembedded;

ALTER FUNCTION index_vectors RENAME TO create_vector_index;

ALTER FUNCTION forget_vectors RENAME TO drop_vector_index;

ALTER FUNCTION renew_word_statistics RENAME TO refresh_term_statistics;
