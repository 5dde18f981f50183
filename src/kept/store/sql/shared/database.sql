-- name: current_time
SELECT now() AS moment;
