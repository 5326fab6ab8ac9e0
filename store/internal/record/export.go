package record

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/table"
)

// Exporter receives the parts of a session.
type Exporter struct {
	Message  func(*belay.Message) error
	Call     func(*belay.CallRecord) error
	Approval func(*belay.Approval) error
	Run      func(*hook.Run) error
}

// Export passes every part of a session to the functions of an Exporter. All queries must
// see the same snapshot.
func Export(ctx context.Context, q *table.Queries, to Exporter, row table.Session) error {
	for after := int64(0); after < row.Last; {
		bodies, err := q.MessagesBetween(ctx, table.MessagesBetweenParams{Session: row.ID, After: after, Until: row.Last, Count: messagePage})
		if err != nil {
			return err
		}
		if len(bodies) == 0 {
			return fmt.Errorf("message %d is missing in the store", after+1)
		}
		after += int64(len(bodies))
		if err := each(bodies, messageOf, func(m **belay.Message) error { return to.Message(*m) }); err != nil {
			return err
		}
	}
	calls, err := q.CallsOfSession(ctx, row.ID)
	if err != nil {
		return err
	}
	if err := each(calls, callOf, to.Call); err != nil {
		return err
	}
	approvals, err := q.ApprovalsOfSession(ctx, row.ID)
	if err != nil {
		return err
	}
	if err := each(approvals, ApprovalOf, to.Approval); err != nil {
		return err
	}
	runs, err := q.RunsOfSession(ctx, row.ID)
	if err != nil {
		return err
	}
	var failed error
	stream := newRunStream(q, hook.Filter{}, func(r hook.Run) bool {
		failed = to.Run(&r)
		return failed == nil
	})
	if err := stream.all(ctx, runs); err != nil {
		return err
	}
	return failed
}
