-- One row for many runs. A dispatch with 100 hooks stores 100 runs that are equal in most columns. A folded row has the
-- first of these runs in its own columns, and the rest of them in the new columns. The further runs have the positions
-- after the row's own position. All runs of a folded row have ended, so the row never changes.
--
-- Only programs that know these columns find the further runs. store/sqlite folds and rejects older programs.
-- store/postgres reads folded rows, but does not write them yet, so that older programs keep working.

-- +goose Up
ALTER TABLE runs ADD COLUMN more BIGINT NOT NULL DEFAULT 0;   -- the number of further runs
ALTER TABLE runs ADD COLUMN hooks TEXT NOT NULL DEFAULT '';   -- their hooks: a list in run_hooks, '' for none
ALTER TABLE runs ADD COLUMN folded TEXT NOT NULL DEFAULT '';  -- their ids and times, see record.Fold
CREATE INDEX runs_dispatch ON runs (dispatch) WHERE more > 0;
CREATE INDEX runs_hooks ON runs (hooks, started) WHERE hooks <> '';

-- The hooks of folded runs. Most dispatches of a phase have the same hooks, so they share a list.
CREATE TABLE run_hooks (
    list         TEXT   NOT NULL, -- a hash of the list
    idx          BIGINT NOT NULL, -- counted from 1
    subscription TEXT   NOT NULL,
    version      TEXT   NOT NULL,
    origin_name  TEXT   NOT NULL,
    origin_file  TEXT   NOT NULL,
    origin_line  BIGINT NOT NULL,
    PRIMARY KEY (list, idx)
);
CREATE INDEX run_hooks_subscription ON run_hooks (subscription, list);

-- +goose Down
-- SQL cannot unfold rows. The constraint makes the migration fail if there are any, and its name is the message.
CREATE TABLE unfolded (
    more BIGINT NOT NULL CONSTRAINT "runs are folded: restore a backup of the older version" CHECK (more = 0)
);
INSERT INTO unfolded (more) SELECT more FROM runs WHERE more > 0;
DROP TABLE unfolded;
DROP TABLE run_hooks;
DROP INDEX runs_hooks;
DROP INDEX runs_dispatch;
ALTER TABLE runs DROP COLUMN folded;
ALTER TABLE runs DROP COLUMN hooks;
ALTER TABLE runs DROP COLUMN more;
