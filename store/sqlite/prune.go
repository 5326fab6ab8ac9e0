package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Retention defines which sessions are kept. The zero value keeps everything.
type Retention struct {
	// Age removes sessions that were last changed longer ago. 0 means no limit.
	Age time.Duration
	// MaxBytes removes the oldest records that belong to no session, and then the
	// oldest sessions, until all tables and indexes together take at most this size.
	// 0 means no limit.
	MaxBytes int64
	// Keep is how many sessions are kept in any case: the last changed ones.
	// Defaults to 0.
	Keep int
}

// Pruned is the result of Prune.
type Pruned struct {
	Sessions []string `json:"sessions,omitempty"`
	// Runs counts the removed records of hooks: those of removed sessions and those
	// without a session.
	Runs int64 `json:"runs"`
	// Before and After are the stored bytes before and after the call.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Prune removes whole sessions with their calls, approvals and records of hooks, the oldest
// first: by age, then by size. A session stays if it is held, has a running or parked turn,
// an undecided approval, a running hook or an unfinished job. Then the free space of the
// file is released, if the file supports it: a file that other tools rebuilt might not. The
// keys of successful jobs stay, so that no job runs twice.
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
			break // the remaining ones are younger
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

// forget removes a session, unless it was opened in the meantime.
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
		return w.DeleteSession(ctx, session.ID) // the foreign keys remove all that belongs to it
	})
	if err != nil || !gone {
		return err
	}
	did.Sessions, did.Runs = append(did.Sessions, session.ID), did.Runs+runs
	did.After, err = s.size(ctx)
	return err
}

// orphanPage is how many records are removed at a time, so that other writes do not
// wait long.
const orphanPage = 1000

// forgetOrphans removes records that belong to no session: first those over the
// age, then more until the size fits.
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

// size returns the size of the pages in use, in bytes.
func (s *Store) size(ctx context.Context) (int64, error) {
	var pages, free, size int64
	err := s.reader.QueryRowContext(ctx, "SELECT page_count, freelist_count, page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&pages, &free, &size)
	if err != nil {
		return 0, s.explain(record.Cause(ctx, err))
	}
	return (pages - free) * size, nil
}

// shrink returns free pages to the file system, a thousand at a time so that
// other writes do not wait long.
func (s *Store) shrink(ctx context.Context) error {
	for before := int64(math.MaxInt64); ; {
		var free int64
		if err := s.reader.QueryRowContext(ctx, "PRAGMA freelist_count").Scan(&free); err != nil {
			return err //nolint:wrapcheck // the caller adds context
		}
		if free == 0 || free >= before { // done, or the file cannot shrink
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

// Vacuum rewrites the file without free pages and empties the log. It needs disk
// space for a second copy and blocks other writers.
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
