package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Retention says which sessions Prune keeps. The zero value keeps all sessions. There is no
// limit on bytes as in store/sqlite, because removed rows leave free space in the server's
// tables, which the server uses again.
type Retention struct {
	// Age is the maximum time since the last change of a session. 0 means no limit.
	Age time.Duration
	// Keep is how many of the most recently changed sessions Prune never removes. Defaults
	// to 0.
	Keep int
}

// Pruned is the result of Prune.
type Pruned struct {
	Sessions []string `json:"sessions,omitempty"`
	// Runs counts the removed hook runs: those of the removed sessions and those without a
	// session.
	Runs int64 `json:"runs"`
}

// Prune removes whole sessions with their calls, approvals and hook runs, oldest first. It
// keeps a session that is held. It also keeps a session that has a running or parked turn,
// an undecided approval, a running hook or an unfinished job. Prune keeps the keys of
// successful jobs, so that no job runs twice.
func (s *Store) Prune(ctx context.Context, keep Retention) (did Pruned, err error) {
	if keep.Age <= 0 {
		return did, nil
	}
	if err := s.prune(ctx, keep, &did); err != nil {
		return did, fmt.Errorf("prune: %w", s.explain(record.Cause(ctx, err)))
	}
	return did, nil
}

// Prunable returns what Prune would remove now. It removes nothing.
func (s *Store) Prunable(ctx context.Context, keep Retention) (would Pruned, err error) {
	if keep.Age <= 0 {
		return would, nil
	}
	err = s.look(ctx, func(q *table.Queries) error {
		before := s.before(keep)
		if would.Runs, err = q.CountOrphanRuns(ctx, before); err != nil {
			return err
		}
		old, err := old(ctx, q, keep, before)
		for _, session := range old {
			if err == nil {
				var runs int64
				runs, err = q.CountRuns(ctx, session.ID)
				would.Sessions, would.Runs = append(would.Sessions, session.ID), would.Runs+runs
			}
		}
		return err
	})
	if err != nil {
		return Pruned{}, fmt.Errorf("list prunable sessions: %w", s.explain(record.Cause(ctx, err)))
	}
	return would, nil
}

func (s *Store) before(keep Retention) int64 { return record.Nanos(s.now().Add(-keep.Age)) }

func (s *Store) prune(ctx context.Context, keep Retention, did *Pruned) error {
	before := s.before(keep)
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		rows, err := w.DeleteOrphanRuns(ctx, before)
		var removed record.Removed
		for _, row := range rows {
			removed.Add(record.RemovedRow(row))
		}
		w.touched.lines.Removed(&removed)
		did.Runs = removed.Records
		return err
	})
	if err != nil {
		return err
	}
	old, err := old(ctx, s.read, keep, before)
	for _, session := range old {
		if err == nil {
			err = s.forget(ctx, session, did)
		}
	}
	return err
}

// old returns the sessions that Prune can remove, oldest first.
func old(ctx context.Context, q *table.Queries, keep Retention, before int64) ([]table.IdleSessionsRow, error) {
	idle, err := q.IdleSessions(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := q.NewestSessions(ctx, int64(max(keep.Keep, 0)))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(idle, func(session table.IdleSessionsRow) bool {
		return session.Changed >= before || slices.Contains(kept, session.ID)
	}), nil
}

// forget removes a session. It does nothing if the session has been opened in the meantime.
func (s *Store) forget(ctx context.Context, session table.IdleSessionsRow, did *Pruned) error {
	var runs int64
	gone := false
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		runs, gone = 0, false
		// A concurrent Open waits here, and then creates the session again.
		if _, err := w.tx.Exec(ctx, "SELECT 1 FROM sessions WHERE id = $1 FOR UPDATE", session.ID); err != nil {
			return err //nolint:wrapcheck // Prune adds context
		}
		idle, err := w.SessionIdle(ctx, table.SessionIdleParams(session))
		if err != nil || idle == 0 {
			return err
		}
		removed, err := record.Remove(ctx, w.Queries, session.ID)
		if err != nil {
			return err
		}
		w.touched.lines.Removed(&removed)
		runs, gone = removed.Records, true
		return nil
	})
	if err == nil && gone {
		did.Sessions, did.Runs = append(did.Sessions, session.ID), did.Runs+runs
	}
	return err
}

// Vacuum runs VACUUM (ANALYZE), which frees the space of removed rows and updates
// statistics. It can take long on a large database. Others can work during that time.
func (s *Store) Vacuum(ctx context.Context) (before, after int64, err error) {
	conn, done, err := s.apart(ctx) // a connection without a timeout
	if err != nil {
		return 0, 0, fmt.Errorf("vacuum: %w", s.explain(record.Cause(ctx, err)))
	}
	defer done()
	err = s.ask(ctx, &before, databaseSize)
	for _, name := range []string{"sessions", "session_labels", "messages", "calls", "approvals", "approval_words", "queued_turns", "due_turns", "runs", "run_hooks", "audit_chain", "job_keys", "job_inputs", "holders", "river_job"} {
		if err == nil {
			_, err = conn.Exec(ctx, "VACUUM (ANALYZE) "+name)
		}
	}
	if err == nil {
		err = s.ask(ctx, &after, databaseSize)
	}
	if err != nil {
		return before, after, fmt.Errorf("vacuum: %w", s.explain(record.Cause(ctx, err)))
	}
	return before, after, nil
}

const databaseSize = "SELECT pg_database_size(current_database())"
