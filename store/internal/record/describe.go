package record

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// Describe stores the title and the labels of a session. It creates the session if
// necessary.
func Describe(ctx context.Context, q *table.Queries, session string, update belay.SessionUpdate, now time.Time) error {
	if err := q.EnsureSession(ctx, table.EnsureSessionParams{ID: session, Now: Nanos(now)}); err != nil {
		return err
	}
	if _, err := q.LockSession(ctx, session); err != nil { // two concurrent updates run one after the other
		return err
	}
	row, err := q.SessionRow(ctx, session)
	if err != nil {
		return err
	}
	info, err := InfoOf(row, false)
	if err != nil {
		return err
	}
	title, labels, err := update.Apply(info.Title, info.Labels)
	if err != nil {
		return err
	}
	text := ""
	if len(labels) > 0 {
		if text, err = encode(labels); err != nil {
			return err
		}
	}
	if err := q.DescribeSession(ctx, table.DescribeSessionParams{ID: session, Title: title, Labels: text}); err != nil {
		return err
	}
	if maps.Equal(labels, info.Labels) {
		return nil
	}
	if err := q.DeleteLabels(ctx, session); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if err := q.AddLabel(ctx, table.AddLabelParams{Session: session, Name: name, Value: labels[name]}); err != nil {
			return err
		}
	}
	return nil
}
