package record

import (
	"context"
	"time"

	"github.com/belay-run/belay/store/internal/table"
)

// Settled is the result of Settle.
type Settled struct {
	// Holders is 1, or 0 if the holder has left in the meantime.
	Holders int
	// Sessions are the sessions it held, and Open those with a running turn.
	Sessions, Open []string
	// Turns counts the turns it had claimed: they are due again.
	Turns int
	// Runs are the records that had started and are now marked as interrupted.
	Runs []string
}

// Settle releases a holder's sessions, ends its runs and removes it from the
// list. number returns new positions for runs.
func Settle(ctx context.Context, q *table.Queries, holder string, now time.Time, number func(n int) ([]int64, error)) (did Settled, err error) {
	held, err := q.HeldSessions(ctx, holder)
	if err != nil {
		return did, err
	}
	for _, session := range held {
		did.Sessions = append(did.Sessions, session.ID)
		if session.TurnState == turnOpen {
			did.Open = append(did.Open, session.ID)
		}
	}
	if did.Runs, err = interrupt(ctx, q, holder, now, number); err != nil {
		return did, err
	}
	if err := q.ReleaseHolder(ctx, holder); err != nil {
		return did, err
	}
	turns, err := q.ReleaseTurns(ctx, holder)
	if err != nil {
		return did, err
	}
	did.Turns = int(turns)
	n, err := q.DeleteHolder(ctx, holder)
	did.Holders = int(n)
	return did, err
}

// interrupt ends the runs that a holder has not ended, and returns their ids.
func interrupt(ctx context.Context, q *table.Queries, holder string, now time.Time, number func(n int) ([]int64, error)) (ids []string, err error) {
	runs, err := q.UnfinishedRuns(ctx, holder)
	if err != nil || len(runs) == 0 {
		return nil, err
	}
	places, err := number(len(runs))
	if err != nil {
		return nil, err
	}
	ended := Nanos(now)
	for i, run := range runs {
		err := q.InterruptRun(ctx, table.InterruptRunParams{ID: run.ID, Changed: places[i], Ended: ended, Latency: max(ended-run.Started, 0)})
		if err != nil {
			return nil, err
		}
		ids = append(ids, run.ID)
	}
	return ids, nil
}
