package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// TakeKeys reserves the keys of jobs and returns the keys that were free. sessions maps a
// key to the session of its job, if the job has one.
func TakeKeys(ctx context.Context, q *table.Queries, keys []string, sessions map[string]string, now time.Time) ([]string, error) {
	var taken []string
	for _, key := range keys {
		n, err := q.TakeKey(ctx, table.TakeKeyParams{ID: key, Changed: Nanos(now), Session: sessions[key]})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			taken = append(taken, key)
		}
	}
	return taken, nil
}

// KeyDone reports whether a job with this key has succeeded.
func KeyDone(ctx context.Context, q *table.Queries, key string) (bool, error) {
	done, err := q.KeyDone(ctx, key)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return done, err
}

// EndKey is called when a job has ended. If done is true, the key stays reserved for good.
// Otherwise the key is free again. EndKey also removes the job's input.
func EndKey(ctx context.Context, q *table.Queries, key string, done bool, now time.Time) error {
	if err := q.DeleteJobInput(ctx, key); err != nil {
		return err
	}
	if !done {
		return q.FreeKey(ctx, key)
	}
	return q.EndKey(ctx, table.EndKeyParams{ID: key, Changed: Nanos(now)})
}

// JobInput returns the input of a job that has not ended. explain turns a database error
// into an error of the store.
func JobInput(ctx context.Context, q *table.Queries, job hook.Job, explain func(error) error) (json.RawMessage, error) {
	body, err := q.JobInput(ctx, job.Key)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, fmt.Errorf("the input of job %s: %w", job.ID, hook.ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("the input of job %s: %w", job.ID, explain(err))
	}
	return json.RawMessage(body), nil
}
