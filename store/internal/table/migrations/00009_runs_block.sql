-- The runs of a subscription. A dispatch with 100 hooks stores 100 runs of different subscriptions. In an index that begins
-- with the subscription, they change 100 pages. In this index the runs of one block of positions are together, so that they
-- change a few pages. A listing looks for the subscription in each block. Only an index changes, so that older programs
-- keep working.

-- +goose Up
DROP INDEX runs_subscription;
CREATE INDEX runs_block ON runs ((seq / 1024), subscription, started);

-- +goose Down
DROP INDEX runs_block;
CREATE INDEX runs_subscription ON runs (subscription, started);
