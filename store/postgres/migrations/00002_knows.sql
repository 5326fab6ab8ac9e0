-- Which migrations the program of a holder knows, of those that all databases share: what one of them needs is not taken
-- away while it lives.

-- +goose Up
ALTER TABLE holders ADD COLUMN knows BIGINT NOT NULL DEFAULT 0;

-- As "oldest" is for the migrations that all databases share.
INSERT INTO counters (name, value) VALUES ('oldest_postgres', 2);

-- +goose Down
DELETE FROM counters WHERE name = 'oldest_postgres';
ALTER TABLE holders DROP COLUMN knows;
