-- name: AddHolder :exec
INSERT INTO holders (id, pid, host, since, process, path) VALUES (@id, @pid, @host, @since, @process, @path);

-- name: Holder :one
SELECT * FROM holders WHERE id = @id;

-- name: Holders :many
SELECT * FROM holders ORDER BY since, id;

-- name: MarkWorker :exec
UPDATE holders SET worker = TRUE WHERE id = @id;

-- name: DeleteHolder :execrows
DELETE FROM holders WHERE id = @id;
