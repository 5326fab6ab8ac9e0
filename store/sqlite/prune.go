package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Retention defines what is kept. The zero value keeps everything.
type Retention struct {
	// Age removes sessions that were last changed longer ago. Defaults to none.
	Age time.Duration
	// MaxBytes removes the oldest records that belong to no session, and then the
	// oldest sessions, until what is stored, all tables with their indexes, takes no
	// more than this. Defaults to no bound.
	MaxBytes int64
	// Keep is how many sessions stay in any case, the last changed ones. Defaults
	// to 0.
	Keep int
}

// Pruned is what Prune removed.
type Pruned struct {
	Sessions []string `json:"sessions,omitempty"`
	// Runs counts the records of hooks, theirs and those that belong to no session.
	Runs int64 `json:"runs"`
	// Before and After are what was stored and what is, in bytes.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Prune removes whole sessions with their calls, approvals and records of hooks, the oldest
// first: by age, then by size. A session stays if it is held, has a running or parked turn,
// an undecided approval, a running hook or an unfinished job. Then the free space of the
// file is released, if the file supports it: a file that was rebuilt with other tools may
// not. The keys of successful jobs stay, so that no job runs twice.
func (s *Store) Prune(ctx context.Context, keep Retention) (did Pruned, err error) {
	if did.Before, err = s.size(ctx); err != nil {
		return did, fmt.Errorf("prune: %w", err)
	}
	did.After = did.Before
	if err := s.pruneSessions(ctx, keep, &did); err != nil {
		return did, fmt.Errorf("prune: %w", s.explain(record.Cause(ctx, err)))
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
			break // those that follow are younger
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

// forget removes a session, unless it was taken up meanwhile.
func (s *Store) forget(ctx context.Context, session table.IdleSessionsRow, did *Pruned) error {
	var runs int64
	gone := false
	err := s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		idle, err := w.SessionIdle(ctx, table.SessionIdleParams(session))
		if err != nil || idle == 0 {
			return err
		}
		if runs, err = w.DeleteRuns(ctx, session.ID); err != nil {
			return err
		}
		gone = true
		return w.DeleteSession(ctx, session.ID) // and, by reference, all that belongs to it
	})
	if err != nil || !gone {
		return err
	}
	did.Sessions, did.Runs = append(did.Sessions, session.ID), did.Runs+runs
	did.After, err = s.size(ctx)
	return err
}

// orphanPage is how many records are removed at a time, so that writes are not kept
// waiting.
const orphanPage = 1000

// forgetOrphans removes records that belong to no session: the old ones, then more
// if there is too much.
func (s *Store) forgetOrphans(ctx context.Context, keep Retention, did *Pruned) error {
	if keep.Age > 0 {
		before := record.Nanos(s.now().Add(-keep.Age))
		if _, err := s.forgetRuns(ctx, did, func(ctx context.Context, w *writing) (int64, error) { return w.DeleteOrphanRuns(ctx, before) }); err != nil {
			return err
		}
	}
	for keep.MaxBytes > 0 && did.After > keep.MaxBytes {
		n, err := s.forgetRuns(ctx, did, func(ctx context.Context, w *writing) (int64, error) { return w.DeleteOldestOrphanRuns(ctx, orphanPage) })
		if err != nil || n < orphanPage {
			return err
		}
	}
	return nil
}

// forgetRuns removes records and counts them.
func (s *Store) forgetRuns(ctx context.Context, did *Pruned, forget func(context.Context, *writing) (int64, error)) (n int64, err error) {
	err = s.submit(ctx, func(ctx context.Context, w *writing) (err error) {
		n, err = forget(ctx, w)
		return err
	})
	if err != nil {
		return 0, err
	}
	did.Runs += n
	did.After, err = s.size(ctx)
	return n, err
}

// size is what is stored, in bytes: the pages in use.
func (s *Store) size(ctx context.Context) (int64, error) {
	var pages, free, size int64
	err := s.reader.QueryRowContext(ctx, "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&pages, &free, &size)
	if err != nil {
		return 0, s.explain(record.Cause(ctx, err))
	}
	return (pages - free) * size, nil
}

// shrink gives free pages back to the file system, a thousand at a time so that
// writes are not kept waiting.
func (s *Store) shrink(ctx context.Context) error {
	for before := int64(math.MaxInt64); ; {
		var free int64
		if err := s.reader.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		if free == 0 || free >= before { // it is done, or the file cannot be made smaller
			break
		}
		before = free
		if err := s.executeAlone(ctx, "PRAGMA incremental_vacuum(1000)"); err != nil {
			return err
		}
	}
	// Pages that a reader still uses stay in the log until the next time.
	return s.executeAlone(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
}

// Vacuum writes the file anew, without what is free in it, and empties the log. That
// takes room for a second copy while it lasts, and others wait.
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
