-- name: prepare_vectors
SELECT 1 AS ready;

-- name: create_vector_index
-- Nothing to do: vectors are compared in memory.
SELECT 0 AS indexed WHERE :model + :enough IS NULL;

-- name: drop_vector_index
SELECT 0 WHERE :model IS NULL;
