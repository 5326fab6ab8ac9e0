-- What PostgreSQL has besides the tables that all databases share. Many machines write at once here, so nothing that
-- everybody needs may be a row that one transaction keeps locked until its commit is on the disk.

-- +goose Up

-- They take the place of the counters: numbers that only grow, and that nobody waits for. Some are never used.
CREATE SEQUENCE belay_epoch;
CREATE SEQUENCE belay_run;

-- A holder is taken for gone when it was not seen for as long as its lease. Both times are the server's: no two machines
-- need agree on the time.
ALTER TABLE holders ADD COLUMN seen TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp();
ALTER TABLE holders ADD COLUMN lease INTERVAL NOT NULL DEFAULT '20 seconds';

-- +goose Down
ALTER TABLE holders DROP COLUMN lease;
ALTER TABLE holders DROP COLUMN seen;
DROP SEQUENCE belay_run;
DROP SEQUENCE belay_epoch;
