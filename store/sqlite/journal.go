package sqlite

import (
	"context"
	"fmt"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// journal is a store as a [hook.FollowJournal].
type journal Store

// Append stores runs, durably, all or none.
func (j *journal) Append(ctx context.Context, runs []hook.Run) error {
	s := (*Store)(j)
	rows, err := runRows(s.id, runs)
	if err != nil || len(rows) == 0 {
		return err
	}
	return s.submit(ctx, func(ctx context.Context, w *writing) error { return w.appendRuns(ctx, rows) })
}

// appendRuns stores runs by the rules of hook.Journal.
func (w *writing) appendRuns(ctx context.Context, rows []table.PutRunParams) error {
	if len(rows) == 0 {
		return nil
	}
	last, err := w.NextNumber(ctx, table.NextNumberParams{Count: int64(len(rows)), Name: "run"})
	if err != nil {
		return err
	}
	w.runs = true
	for i := range rows {
		rows[i].Seq = last - int64(len(rows)-1-i)
		n, err := w.PutRun(ctx, rows[i])
		if err == nil && n == 0 {
			err = w.late(ctx, &rows[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// late looks at a run that has ended already: it stays as it is.
func (w *writing) late(ctx context.Context, row *table.PutRunParams) error {
	stored, err := w.RunState(ctx, row.ID)
	if err == nil && row.State != hook.Started.String() && row.State != stored {
		err = fmt.Errorf("append: run %s is %s, not %s: %w", row.ID, stored, row.State, hook.ErrSettled)
	}
	return err
}
