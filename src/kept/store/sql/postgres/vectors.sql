-- name: prepare_vectors
SELECT prepare_vectors() AS ready;

-- name: create_vector_index
SELECT create_vector_index(:model, :enough) AS indexed;

-- name: drop_vector_index
SELECT drop_vector_index(:model);
