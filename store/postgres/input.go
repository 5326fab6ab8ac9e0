package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// EnqueueInput stores a run, its job and the job's input in one transaction. The input can
// contain parts of the conversation, so it is in a separate table. EnqueueInput retries as
// Enqueue does.
func (q *queue) EnqueueInput(ctx context.Context, asked hook.Run, job hook.Job, input json.RawMessage) error {
	b := (*backend)(q.store)
	err := b.writeAgain(ctx, func(ctx context.Context, tx pgx.Tx) error {
		done, err := b.KeyDone(ctx, tx, job.Key)
		if err != nil {
			return err
		}
		if err := b.AppendRuns(ctx, tx, []hook.Run{asked}); err != nil {
			return err
		}
		if done {
			return nil // a job with this key has already succeeded
		}
		if err := q.store.insertJobs(ctx, b.writing(ctx), []hook.Job{job}); err != nil {
			return err
		}
		return b.writing(ctx).PutJobInput(ctx, table.PutJobInputParams{ID: job.Key, Body: string(input)})
	})
	if err != nil {
		return fmt.Errorf("enqueue a job with its input: %w", q.store.explain(err))
	}
	return nil
}

// Input returns the input of a job that has not ended.
func (q *queue) Input(ctx context.Context, job hook.Job) (json.RawMessage, error) {
	return record.JobInput(ctx, q.store.read, job, q.store.explain)
}

var _ hook.InputQueue = (*queue)(nil)
