package record

import (
	"context"
	"time"

	"github.com/belay-run/belay/store/internal/table"
)

// Settled is what Settle has cleaned up.
type Settled struct {
	// Holders is 1, or 0 if the holder was already removed.
	Holders int
	// Sessions are the sessions that the holder held. Open are the ones with a running
	// turn.
	Sessions, Open []string
	// Turns counts the turns that the holder had claimed. They are due again.
	Turns int
	// Runs are the runs that had started and are now interrupted, as they were before.
	Runs []table.Run
}

// RunIDs returns the ids of the runs.
func (s *Settled) RunIDs() (ids []string) {
	for i := range s.Runs {
		ids = append(ids, s.Runs[i].ID)
	}
	return ids
}

// Settle cleans up after a holder that is gone: it releases the holder's sessions, ends its
// runs and removes the holder. number returns new positions for the runs.
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

// interrupt marks the started runs of a holder as interrupted, and returns them as they were before.
func interrupt(ctx context.Context, q *table.Queries, holder string, now time.Time, number func(n int) ([]int64, error)) (runs []table.Run, err error) {
	ids, err := q.UnfinishedRuns(ctx, holder)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	for _, id := range ids {
		run, err := q.RunByID(ctx, id)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	places, err := number(len(runs))
	if err != nil {
		return nil, err
	}
	ended := Nanos(now)
	for i := range runs {
		run := &runs[i]
		err := q.InterruptRun(ctx, table.InterruptRunParams{ID: run.ID, Changed: places[i], Ended: ended, Latency: max(ended-run.Started, 0)})
		if err != nil {
			return nil, err
		}
	}
	return runs, nil
}
