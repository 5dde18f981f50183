-- Internal tables and columns get the names that the code uses.

ALTER TABLE notices RENAME TO notifications;

DROP INDEX notices_due;

CREATE INDEX notifications_due ON notifications (due_at, id) WHERE due_at IS NOT NULL;

DROP INDEX notices_of_source;

CREATE INDEX notifications_of_source ON notifications (source_id);

ALTER TABLE asked_once RENAME TO idempotency_keys;

ALTER TABLE idempotency_keys RENAME COLUMN asked_at TO created_at;

DROP INDEX asked_once_by_job;

CREATE INDEX idempotency_keys_by_job ON idempotency_keys (job_id);

DROP INDEX asked_once_by_time;

CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

ALTER TABLE passes RENAME TO maintenance_passes;

ALTER TABLE maintenance_passes RENAME COLUMN begun_at TO started_at;

ALTER TABLE texts_taken RENAME TO embedding_claims;

ALTER TABLE host_shares RENAME COLUMN place_id TO lease_id;

ALTER TABLE host_shares RENAME COLUMN at_once TO concurrency;

DROP INDEX host_shares_of_place;

CREATE INDEX host_shares_of_lease ON host_shares (lease_id);
