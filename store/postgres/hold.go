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

// Open takes hold of a session, creating it if there is none, and reads it. A
// session whose holder is gone is taken over.
func (s *Store) Open(ctx context.Context, session string) (*belay.Stored, error) {
	if !storable(session) {
		return nil, fmt.Errorf("open session %q: the id cannot be stored: %w", session, errUnstorable)
	}
	s.payBack(ctx, session)
	for {
		epoch, left, err := s.hold(ctx, session)
		switch {
		case err != nil:
			if epoch != 0 && isCut(err) { // nobody knows whether it was taken
				s.owed.note(session, epoch)
			}
			return nil, fmt.Errorf("open session %q: %w", session, err)
		case left == "":
			return s.openHeld(ctx, session, epoch)
		}
		if err := s.settle(ctx, left); err != nil {
			return nil, fmt.Errorf("open session %q: settle what %s left: %w", session, left, err)
		}
	}
}

const (
	// nextEpoch takes an epoch for a holder that others know to live, and keeps it
	// from being taken for gone until the session is its own.
	nextEpoch = "SELECT nextval('belay_epoch') FROM holders WHERE id = $1 AND seen + lease > clock_timestamp() FOR KEY SHARE"
	// takeSession takes a session that nobody holds, or that is new. Of several who
	// try at once one succeeds: the others wait for it, and then change no row.
	takeSession = `INSERT INTO sessions (id, epoch, holder, created, changed, last, response, compaction, keep, turn_state, state)
		VALUES ($1, $2, $3, $4, $4, 0, 0, 0, 0, '', '')
		ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch, holder = excluded.holder, changed = excluded.changed WHERE sessions.holder = ''`
)

// hold takes hold of a session. If it was left by a holder that is gone, and must
// be settled first, it returns that.
func (s *Store) hold(ctx context.Context, session string) (epoch int64, left string, err error) {
	now := record.Nanos(s.now())
	err = s.submit(ctx, func(ctx context.Context, w *writing) error {
		left = ""
		err := w.tx.QueryRow(ctx, nextEpoch, s.id).Scan(&epoch)
		if errors.Is(err, pgx.ErrNoRows) { // it was taken for gone
			if err := s.enter(ctx, w.tx); err != nil {
				return err
			}
			err = w.tx.QueryRow(ctx, nextEpoch, s.id).Scan(&epoch)
		}
		if err != nil {
			return err //nolint:wrapcheck // Open says what for
		}
		taken, err := w.tx.Exec(ctx, takeSession, session, epoch, s.id, now)
		if err != nil || taken.RowsAffected() > 0 {
			return err //nolint:wrapcheck // likewise
		}
		found, err := w.SessionHold(ctx, session)
		switch {
		case errors.Is(err, sql.ErrNoRows): // it was removed meanwhile
			return fmt.Errorf("%w: by somebody who removed it", belay.ErrHeld)
		case err != nil:
			return err
		case found.Holder == s.id:
			return fmt.Errorf("%w: it is open in this process", belay.ErrHeld)
		case found.Holder == "":
			return fmt.Errorf("%w: by somebody who has let go of it just now", belay.ErrHeld)
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

// openHeld reads a session that was taken hold of, or lets go of it again.
func (s *Store) openHeld(ctx context.Context, session string, epoch int64) (stored *belay.Stored, err error) {
	err = s.look(ctx, func(q *table.Queries) error {
		stored, err = record.Stored(ctx, q, session)
		return err
	})
	if err == nil {
		return stored, nil
	}
	released := s.Release(context.WithoutCancel(ctx), session, epoch)
	return nil, errors.Join(fmt.Errorf("open session %q: %w", session, s.explain(record.Cause(ctx, err))), released)
}

// Release lets go of a session. The wrong epoch is harmless. If the server cannot be
// reached it is let go of when it can.
func (s *Store) Release(ctx context.Context, session string, epoch int64) error {
	if err := s.release(ctx, session, epoch); err != nil {
		s.owed.note(session, epoch)
		return fmt.Errorf("release session %q: %w", session, err)
	}
	return nil
}

// release lets go of a session. Unlike other writes it does no harm twice, so it is done
// again if nobody knows whether it was.
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

// owed are the sessions that could not be let go of, with the epochs of their holds.
type owed struct {
	mu       sync.Mutex
	sessions map[string]int64
	paying   bool // somebody is about to let go of all
}

func (o *owed) note(session string, epoch int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sessions == nil {
		o.sessions = make(map[string]int64)
	}
	o.sessions[session] = epoch
}

// payBack lets go of what could not be let go of before: of one session, or of all if
// none is named.
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

// payBackApart begins to let go of what could not be let go of before, if there is any:
// it may take long, and whoever calls has other things to do.
func (s *Store) payBackApart(ctx context.Context) {
	s.owed.mu.Lock()
	defer s.owed.mu.Unlock()
	if len(s.owed.sessions) == 0 || s.owed.paying || !s.begin() {
		return
	}
	s.owed.paying = true
	go func() { // ends with the context of the store, and Close waits for it
		defer s.working.Done()
		s.payBack(ctx, "")
		s.owed.mu.Lock()
		defer s.owed.mu.Unlock()
		s.owed.paying = false
	}()
}
