package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
	"github.com/belay-run/belay/store/internal/table"
)

// Open takes a hold on a session and reads it. It creates the session if necessary. If the
// holder is dead, Open takes over the session.
func (s *Store) Open(ctx context.Context, session string) (*belay.Stored, error) {
	if !storable(session) {
		return nil, fmt.Errorf("open session %q: the session id is invalid: %w", session, errUnstorable)
	}
	s.payBack(ctx, session)
	for {
		epoch, left, err := s.hold(ctx, session)
		switch {
		case err != nil:
			if epoch != 0 && isCut(err) { // the hold may have been stored
				s.owed.note(session, epoch)
			}
			return nil, fmt.Errorf("open session %q: %w", session, err)
		case left == "":
			return s.openHeld(ctx, session, epoch)
		}
		if err := s.settle(ctx, left); err != nil {
			return nil, fmt.Errorf("open session %q: cannot clean up after the dead holder %s: %w", session, left, err)
		}
	}
}

const (
	// nextEpoch returns a new epoch if this holder is alive. It also locks the holder's
	// row, so that no one cleans up after this holder during the transaction.
	nextEpoch = "SELECT nextval('belay_epoch') FROM holders WHERE id = $1 AND seen + lease > clock_timestamp() FOR KEY SHARE"
	// takeSession takes a free or new session. If several processes try at the same time,
	// one of them succeeds. The others wait for it and then change no row.
	takeSession = `INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
		VALUES ($1, $2, $3, $4, $4, 0, 0, 0, 0, '', '')
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, changed = excluded.changed WHERE sessions.holder = ''`
)

// hold takes a hold on a session. If a dead process still holds the session, hold only
// returns that holder, and the caller must clean up first.
func (s *Store) hold(ctx context.Context, session string) (epoch int64, left string, err error) {
	now := record.Nanos(s.now())
	err = s.submit(ctx, func(ctx context.Context, w *writing) error {
		left = ""
		err := w.tx.QueryRow(ctx, nextEpoch, s.id).Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) { // this holder counts as dead, so it registers again
			if err := s.enter(ctx, w.tx); err != nil {
				return err
			}
			err = w.tx.QueryRow(ctx, nextEpoch, s.id).Scan(&epoch)
		}
		if err != nil {
			return err //nolint:wrapcheck // Open adds context
		}
		taken, err := w.tx.Exec(ctx, takeSession, session, epoch, s.id, now)
		if err != nil || taken.RowsAffected() > 0 {
			return err //nolint:wrapcheck // likewise
		}
		found, err := w.SessionHold(ctx, session)
		switch {
		case errors.Is(err, sql.ErrNoRows): // the session was removed in the meantime
			return fmt.Errorf("%w: its holder is unknown", belay.ErrHeld)
		case err != nil:
			return err
		case found.Holder == s.id:
			return fmt.Errorf("%w: it is open in this process", belay.ErrHeld)
		case found.Holder == "":
			return fmt.Errorf("%w: its holder has just released it: try again", belay.ErrHeld)
		}
		gone, h, err := s.gone(ctx, w.tx, found.Holder)
		switch {
		case err != nil:
			return err
		case !gone:
			return fmt.Errorf("%w: by %s", belay.ErrHeld, describe(h))
		}
		left = found.Holder
		return nil
	})
	return epoch, left, err
}

// openHeld reads a held session. If that fails, openHeld releases the session.
func (s *Store) openHeld(ctx context.Context, session string, epoch int64) (stored *belay.Stored, err error) {
	err = s.look(ctx, func(q *table.Queries) error {
		stored, err = record.Stored(ctx, q, session)
		return err
	})
	if err == nil {
		s.granted.Opened(session, stored.State.Grants)
		return stored, nil
	}
	released := s.Release(context.WithoutCancel(ctx), session, epoch)
	return nil, errors.Join(fmt.Errorf("open session %q: %w", session, s.explain(record.Cause(ctx, err))), released)
}

// Release releases the hold on a session. It does nothing if the epoch is not that of the
// current hold. If the server cannot be reached, Release returns an error, and the store
// releases the session later.
func (s *Store) Release(ctx context.Context, session string, epoch int64) error {
	if err := s.release(ctx, session, epoch); err != nil {
		s.owed.note(session, epoch)
		return fmt.Errorf("release session %q: %w", session, err)
	}
	s.granted.Forget(session)
	return nil
}

// release releases a session. It is idempotent, so it tries again if the result is unknown.
func (s *Store) release(ctx context.Context, session string, epoch int64) (err error) {
	for range attempts {
		err = s.submit(ctx, func(ctx context.Context, w *writing) error {
			return w.ReleaseSession(ctx, table.ReleaseSessionParams{ID: session, Epoch: epoch, Holder: s.id})
		})
		if !isDropped(err) {
			return err
		}
	}
	return err
}

// owed are the sessions that could not be released yet, with the epochs of their holds.
// payBack releases them.
type owed struct {
	mu       sync.Mutex
	sessions map[string]int64
	paying   bool // payBackApart is running
}

func (o *owed) note(session string, epoch int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sessions == nil {
		o.sessions = make(map[string]int64)
	}
	o.sessions[session] = epoch
}

// payBack releases sessions that could not be released before: the given session, or all if
// session is "".
func (s *Store) payBack(ctx context.Context, session string) {
	s.owed.mu.Lock()
	due := maps.Clone(s.owed.sessions)
	s.owed.mu.Unlock()
	for id, epoch := range due {
		if session != "" && session != id || s.release(ctx, id, epoch) != nil {
			continue
		}
		s.owed.mu.Lock()
		if s.owed.sessions[id] == epoch {
			delete(s.owed.sessions, id)
		}
		s.owed.mu.Unlock()
	}
}

// payBackApart calls payBack in a goroutine if there are sessions to release, because that
// can take long.
func (s *Store) payBackApart(ctx context.Context) {
	s.owed.mu.Lock()
	defer s.owed.mu.Unlock()
	if len(s.owed.sessions) == 0 || s.owed.paying || !s.begin() {
		return
	}
	s.owed.paying = true
	go func() { // ends when the store is closed; Close waits for it
		defer s.working.Done()
		s.payBack(ctx, "")
		s.owed.mu.Lock()
		defer s.owed.mu.Unlock()
		s.owed.paying = false
	}()
}
