-- name: TakeKey :execrows
INSERT INTO job_keys (id, done, changed, session) VALUES (@id, FALSE, @changed, @session) ON CONFLICT (id) DO NOTHING;

-- name: KeyDone :one
SELECT done FROM job_keys WHERE id = @id;

-- name: EndKey :exec
INSERT INTO job_keys (id, done, changed) VALUES (@id, TRUE, @changed)
ON CONFLICT (id) DO UPDATE SET done = TRUE, changed = excluded.changed;

-- name: FreeKey :exec
DELETE FROM job_keys WHERE id = @id AND NOT done;

-- The keys of jobs that have succeeded stay, so that no job runs twice, but no longer name the session.

-- name: FreeKeysOf :exec
DELETE FROM job_keys WHERE session = @session AND NOT done;

-- name: ForgetSessionOfKeys :exec
UPDATE job_keys SET session = '' WHERE session = @session;
