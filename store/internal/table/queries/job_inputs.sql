-- Does not replace an existing input.

-- name: PutJobInput :exec
INSERT INTO job_inputs (id, body) VALUES (@id, @body) ON CONFLICT (id) DO NOTHING;

-- name: JobInput :one
SELECT body FROM job_inputs WHERE id = @id;

-- name: DeleteJobInput :exec
DELETE FROM job_inputs WHERE id = @id;

-- name: DeleteJobInputsOf :exec
DELETE FROM job_inputs WHERE id IN (SELECT k.id FROM job_keys k WHERE k.session = @session AND NOT k.done);
