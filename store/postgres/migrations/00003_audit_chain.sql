-- The numbers of the entries of the audit chain, and the index that finds the last entry of a writer. Each connection of
-- each process has a lane of its own, so that no transaction waits for another one.

-- +goose Up
CREATE SEQUENCE belay_chain;
CREATE UNIQUE INDEX audit_chain_lane ON audit_chain (lane, idx);

-- +goose Down
DROP INDEX audit_chain_lane;
DROP SEQUENCE belay_chain;
