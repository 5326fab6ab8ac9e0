package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Retention says which sessions Prune keeps. The zero value keeps all sessions.
type Retention struct {
	// Age is the maximum time since the last change of a session. 0 means no limit.
	Age time.Duration
	// MaxBytes is the maximum size of all tables and indexes together. To reach it, Prune
	// removes the oldest runs without a session first, and then the oldest sessions. 0
	// means no limit.
	MaxBytes int64
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
	// Before and After are the sizes before and after the call, in bytes.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Prune removes whole sessions with their calls, approvals and hook runs, oldest first. It
// keeps a session that is held. It also keeps a session that has a running or parked turn,
// an undecided approval, a running hook or an unfinished job. Prune keeps the keys of
// successful jobs, so that no job runs twice.
//
// Then Prune makes the file smaller. This is not possible if another tool has rebuilt the
// file without SQLite's auto_vacuum.
func (s *Store) Prune(ctx context.Context, keep Retention) (did Pruned, err error) {
	if did.Before, err = s.size(ctx); err != nil {
		return did, fmt.Errorf("prune: %w", err)
	}
	did.After = did.Before
	if err := s.pruneSessions(ctx, keep, &did); err != nil {
		return did, fmt.Errorf("prune: %w", s.explain(record.Cause(ctx, err)))
	}
	if err := s.submit(ctx, func(ctx context.Context, w *writing) error { return w.DeleteUnusedHooks(ctx) }); err != nil {
		return did, fmt.Errorf("prune: %w", err)
	}
	if err := s.shrink(ctx); err != nil {
		return did, fmt.Errorf("prune: %w", s.explain(record.Cause(ctx, err)))
	}
	if did.After, err = s.size(ctx); err != nil {
		return did, fmt.Errorf("prune: %w", err)
	}
	return did, nil
}

func (s *Store) pruneSessions(ctx context.Context, keep Retention, did *Pruned) error {
	if err := s.forgetOrphans(ctx, keep, did); err != nil {
		return err
	}
	idle, err := s.read.IdleSessions(ctx)
	if err != nil {
		return err
	}
	kept, err := s.read.NewestSessions(ctx, int64(max(keep.Keep, 0)))
	if err != nil {
		return err
	}
	stays := make(map[string]bool, len(kept))
	for _, id := range kept {
		stays[id] = true
	}
	for _, session := range idle {
		old := keep.Age > 0 && s.now().Sub(record.Moment(session.Changed)) > keep.Age
		if !old && (keep.MaxBytes <= 0 || did.After <= keep.MaxBytes) {
			break // the remaining sessions are newer
		}
		if stays[session.ID] {
			continue
		}
		if err := s.forget(ctx, session, did); err != nil {
			return err
		}
	}
	return nil
}

// forget removes a session. It does nothing if the session has been opened in the meantime.
func (s *Store) forget(ctx context.Context, session table.IdleSessionsRow, did *Pruned) error {
	var runs int64
	gone := false
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		idle, err := w.SessionIdle(ctx, table.SessionIdleParams(session))
		if err != nil || idle == 0 {
			return err
		}
		removed, err := record.Remove(ctx, w.Queries, session.ID)
		if err != nil {
			return err
		}
		w.lines.Removed(&removed)
		runs, gone = removed.Records, true
		return nil
	})
	if err != nil || !gone {
		return err
	}
	did.Sessions, did.Runs = append(did.Sessions, session.ID), did.Runs+runs
	did.After, err = s.size(ctx)
	return err
}

// orphanPage is how many rows of runs one transaction removes, so that other writes do not
// wait long.
const orphanPage = 1000

// forgetOrphans removes runs without a session: first runs older than keep.Age, then the
// oldest until the size fits.
func (s *Store) forgetOrphans(ctx context.Context, keep Retention, did *Pruned) error {
	if keep.Age > 0 {
		before := record.Nanos(s.now().Add(-keep.Age))
		if _, err := s.forgetRuns(ctx, did, func(ctx context.Context, w *writing) (removed record.Removed, err error) {
			rows, err := w.DeleteOrphanRuns(ctx, before)
			for _, row := range rows {
				removed.Add(record.RemovedRow(row))
			}
			return removed, err
		}); err != nil {
			return err
		}
	}
	for keep.MaxBytes > 0 && did.After > keep.MaxBytes {
		n, err := s.forgetRuns(ctx, did, func(ctx context.Context, w *writing) (removed record.Removed, err error) {
			rows, err := w.DeleteOldestOrphanRuns(ctx, orphanPage)
			for _, row := range rows {
				removed.Add(record.RemovedRow(row))
			}
			return removed, err
		})
		if err != nil || n < orphanPage {
			return err
		}
	}
	return nil
}

// forgetRuns removes runs and returns the number of removed rows.
func (s *Store) forgetRuns(ctx context.Context, did *Pruned, forget func(context.Context, *writing) (record.Removed, error)) (rows int, err error) {
	var removed record.Removed
	err = s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		removed, err = forget(ctx, w)
		w.lines.Removed(&removed)
		return err
	})
	if err != nil {
		return 0, err
	}
	did.Runs += removed.Records
	did.After, err = s.size(ctx)
	return len(removed.Runs), err
}

// size returns the size of all used pages, in bytes.
func (s *Store) size(ctx context.Context) (int64, error) {
	var pages, free, size int64
	err := s.reader.QueryRowContext(ctx, "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&pages, &free, &size)
	if err != nil {
		return 0, s.explain(record.Cause(ctx, err))
	}
	return (pages - free) * size, nil
}

// shrink returns free pages to the file system. It returns a thousand at a time, so that
// other writes do not wait long.
func (s *Store) shrink(ctx context.Context) error {
	for before := int64(math.MaxInt64); ; {
		var free int64
		if err := s.reader.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		if free == 0 || free >= before { // there are no free pages, or the file cannot shrink
			break
		}
		before = free
		if err := s.executeAlone(ctx, "PRAGMA incremental_vacuum(1000)"); err != nil {
			return err
		}
	}
	// The log keeps pages that a reader still uses, until the next checkpoint.
	return s.executeAlone(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// Vacuum rewrites the file without free pages and empties the log. It needs disk space for
// a second copy, and blocks other writers.
func (s *Store) Vacuum(ctx context.Context) (before, after int64, err error) {
	size := func(to *int64) error {
		return s.reader.QueryRowContext(ctx, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").Scan(to)
	}
	err = size(&before)
	for _, statement := range []string{"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if err == nil {
			err = s.executeAlone(ctx, statement)
		}
	}
	if err == nil {
		err = size(&after)
	}
	if err != nil {
		return before, after, fmt.Errorf("vacuum: %w", s.explain(record.Cause(ctx, err)))
	}
	return before, after, nil
}
