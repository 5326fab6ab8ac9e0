-- Replaces a pending approval. A decided approval, or one of another session, is not changed and counts as no row.

-- name: PutApproval :execrows
INSERT INTO approvals (id, session, response, turn, call_id, tool, hash, asked_by, floor, asked, expires, decision)
VALUES (@id, @session, @response, @turn, @call_id, @tool, @hash, @asked_by, @floor, @asked, @expires, @decision)
ON CONFLICT (id) DO UPDATE SET
    response = excluded.response, turn = excluded.turn, call_id = excluded.call_id, tool = excluded.tool, hash = excluded.hash,
    asked_by = excluded.asked_by, floor = excluded.floor, asked = excluded.asked, expires = excluded.expires, decision = excluded.decision
WHERE approvals.session = excluded.session AND approvals.decision = '';

-- The texts of an approval are stored separately: see the table.

-- name: PutApprovalWords :exec
INSERT INTO approval_words (id, reason, answer, pattern)
VALUES (@id, @reason, @answer, @pattern)
ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, answer = excluded.answer, pattern = excluded.pattern;

-- name: Approval :one
SELECT sqlc.embed(approvals), sqlc.embed(approval_words)
FROM approvals JOIN approval_words ON approval_words.id = approvals.id
WHERE approvals.id = @id;

-- name: Decide :exec
UPDATE approvals SET decision = @decision WHERE id = @id;

-- name: DecideWords :exec
UPDATE approval_words SET answer = @answer, pattern = @pattern WHERE id = @id;

-- name: ApprovalsSince :many
SELECT sqlc.embed(approvals), sqlc.embed(approval_words)
FROM approvals JOIN approval_words ON approval_words.id = approvals.id
WHERE approvals.session = @session AND approvals.response = @response ORDER BY approvals.asked, approvals.id;

-- name: ApprovalsOfSession :many
SELECT sqlc.embed(approvals), sqlc.embed(approval_words)
FROM approvals JOIN approval_words ON approval_words.id = approvals.id
WHERE approvals.session = @session ORDER BY approvals.asked, approvals.id;

-- name: ApprovalIDs :many
SELECT id FROM approvals WHERE session = @session;
