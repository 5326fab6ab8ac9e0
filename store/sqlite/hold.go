package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Open takes a hold on a session and reads it. It creates the session if necessary. If the
// holder is a dead process, Open takes over the session at once.
func (s *Store) Open(ctx context.Context, session string) (*belay.Stored, error) {
	for {
		epoch, holder, err := s.hold(ctx, session)
		switch {
		case err != nil:
			return nil, fmt.Errorf("open session %q: %w", session, err)
		case holder == "":
			return s.openHeld(ctx, session, epoch)
		}
		if err := s.settle(ctx, holder); err != nil {
			return nil, fmt.Errorf("open session %q: cannot clean up after the dead holder %s: %w", session, holder, err)
		}
	}
}

// hold takes a hold on a session. If a dead process still holds the session, hold only
// returns that holder, and the caller must clean up first.
func (s *Store) hold(ctx context.Context, session string) (epoch int64, left string, err error) {
	now := record.Nanos(s.now())
	err = s.submitStage(ctx, opens, func(ctx context.Context, w *writing) error {
		left = ""
		found, err := w.SessionHold(ctx, session)
		fresh := errors.Is(err, sql.ErrNoRows)
		switch {
		case err != nil && !fresh:
			return err
		case !fresh && found.Holder != "":
			if !s.gone(ctx, w.Queries, found.Holder) {
				return s.held(ctx, w, found.Holder)
			}
			left = found.Holder
			return nil
		}
		if epoch, err = w.NextNumber(ctx, table.NextNumberParams{Count: 1, Name: "epoch"}); err != nil {
			return err
		}
		if fresh {
			return w.AddSession(ctx, table.AddSessionParams{ID: session, Epoch: epoch, Holder: s.id, Created: now, Changed: now})
		}
		return w.HoldSession(ctx, table.HoldSessionParams{ID: session, Epoch: epoch, Holder: s.id, Changed: now})
	})
	return epoch, left, err
}

// held returns belay.ErrHeld with a description of the holder.
func (s *Store) held(ctx context.Context, w *writing, holder string) error {
	if holder == s.id {
		return fmt.Errorf("%w: it is open in this process", belay.ErrHeld)
	}
	h, err := w.Holder(ctx, holder)
	if err != nil {
		return fmt.Errorf("%w: its holder is %s", belay.ErrHeld, holder)
	}
	return fmt.Errorf("%w: by %s", belay.ErrHeld, describe(h))
}

// openHeld reads a held session. If that fails, openHeld releases the session.
func (s *Store) openHeld(ctx context.Context, session string, epoch int64) (*belay.Stored, error) {
	stored, err := s.stored(ctx, session)
	if err == nil {
		s.granted.Opened(session, stored.State.Grants)
		return stored, nil
	}
	released := s.Release(context.WithoutCancel(ctx), session, epoch)
	return nil, errors.Join(fmt.Errorf("open session %q: %w", session, s.explain(record.Cause(ctx, err))), released)
}

// stored reads a snapshot of the session for Open.
func (s *Store) stored(ctx context.Context, session string) (stored *belay.Stored, err error) {
	err = s.look(ctx, func(q *table.Queries) error {
		stored, err = record.Stored(ctx, q, session)
		return err
	})
	return stored, err
}

// look runs f on one snapshot of the database.
func (s *Store) look(ctx context.Context, f func(q *table.Queries) error) error {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err //nolint:wrapcheck // the caller adds context
	}
	defer func() { _ = tx.Rollback() }() // ends the read
	return f(s.read.WithTx(tx))
}

// Release releases the hold on a session. It does nothing if the epoch is not that of the
// current hold.
func (s *Store) Release(ctx context.Context, session string, epoch int64) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return w.ReleaseSession(ctx, table.ReleaseSessionParams{ID: session, Epoch: epoch, Holder: s.id})
	})
	if err != nil {
		return fmt.Errorf("release session %q: %w", session, err)
	}
	s.granted.Forget(session)
	return nil
}
