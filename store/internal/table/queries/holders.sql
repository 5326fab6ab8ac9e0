-- name: AddHolder :exec
INSERT INTO holders (id, pid, host, since) VALUES (@id, @pid, @host, @since);

-- name: Holder :one
SELECT * FROM holders WHERE id = @id;

-- name: Holders :many
SELECT * FROM holders ORDER BY since, id;

-- name: DeleteHolder :exec
DELETE FROM holders WHERE id = @id;
