-- A pending approval is replaced; one that is decided, or another session's, stays and counts as no row.

-- name: PutApproval :execrows
INSERT INTO approvals (id, session, response, turn, call_id, tool, hash, reason, asked_by, asked, expires, decision)
VALUES (@id, @session, @response, @turn, @call_id, @tool, @hash, @reason, @asked_by, @asked, @expires, @decision)
ON CONFLICT (id) DO UPDATE SET
    turn = excluded.turn, call_id = excluded.call_id, tool = excluded.tool, hash = excluded.hash, reason = excluded.reason,
    asked_by = excluded.asked_by, asked = excluded.asked, expires = excluded.expires, decision = excluded.decision
WHERE approvals.session = excluded.session AND approvals.decision = '';

-- name: Approval :one
SELECT * FROM approvals WHERE id = @id;

-- name: Decide :exec
UPDATE approvals SET decision = @decision WHERE id = @id;

-- name: ApprovalsSince :many
SELECT * FROM approvals WHERE session = @session AND response = @response ORDER BY asked, id;

-- name: ApprovalsOfSession :many
SELECT * FROM approvals WHERE session = @session ORDER BY asked, id;
