-- name: moment
SELECT now() AS moment;
