-- An entry of another process may have the number already. Then no row is stored.

-- name: AddEntry :execrows
INSERT INTO audit_chain (seq, lane, idx, time, body, hash) VALUES (@seq, @lane, @idx, @time, @body, @hash)
ON CONFLICT (seq) DO NOTHING;

-- name: LastEntry :one
SELECT * FROM audit_chain ORDER BY seq DESC LIMIT 1;
