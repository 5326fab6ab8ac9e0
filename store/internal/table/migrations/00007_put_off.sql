-- Who takes turns, and why a turn was put off. Columns are added and none is changed, so that programs of before go on.

-- +goose Up
ALTER TABLE holders ADD COLUMN worker BOOLEAN NOT NULL DEFAULT FALSE; -- it claims turns

-- In the words of whoever put it off, such as those of an error; '' for a turn that is parked.
ALTER TABLE due_turns ADD COLUMN why TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE due_turns DROP COLUMN why;
ALTER TABLE holders DROP COLUMN worker;
