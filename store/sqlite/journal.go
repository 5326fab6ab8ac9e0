package sqlite

import (
	"context"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// journal implements [hook.FollowJournal] on a store.
type journal Store

// Append stores all runs or none. It returns when they are durable.
func (j *journal) Append(ctx context.Context, runs []hook.Run) error {
	s := (*Store)(j)
	rows, err := record.RunRows(s.id, runs)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.submit(ctx, func(ctx context.Context, w *writing) error { return w.appendRuns(ctx, rows) })
}

// number reserves n positions in the journal.
func (w *writing) number(ctx context.Context, n int) ([]int64, error) {
	last, err := w.NextNumber(ctx, table.NextNumberParams{Count: int64(n), Name: "run"})
	if err != nil {
		return nil, err
	}
	w.runs = true
	places := make([]int64, n)
	for i := range places {
		places[i] = last - int64(n-1-i)
	}
	return places, nil
}
