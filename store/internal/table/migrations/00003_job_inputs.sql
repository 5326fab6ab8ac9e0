-- What the background runs of hooks were given, so that another process can take them up. It is part of what was said, and
-- so apart from the jobs; it goes when the job is over.

-- +goose Up
CREATE TABLE job_inputs (
    id   TEXT NOT NULL PRIMARY KEY, -- the job's key
    body TEXT NOT NULL              -- JSON
);

-- +goose Down
DROP TABLE job_inputs;
