package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// Open takes hold of a session, creating it if there is none, and reads it. A
// session whose holder's process is gone is taken over at once.
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
			return nil, fmt.Errorf("open session %q: settle what %s left: %w", session, holder, err)
		}
	}
}

// hold takes hold of a session. If it was left by a holder that is gone, and must
// be settled first, it returns that.
func (s *Store) hold(ctx context.Context, session string) (epoch int64, left string, err error) {
	now := nanos(s.now())
	err = s.submit(ctx, func(ctx context.Context, w *writing) error {
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

// held says who has a session.
func (s *Store) held(ctx context.Context, w *writing, holder string) error {
	if holder == s.id {
		return fmt.Errorf("%w: it is open in this process", belay.ErrHeld)
	}
	h, err := w.Holder(ctx, holder)
	if err != nil {
		return fmt.Errorf("%w: by the holder %s", belay.ErrHeld, holder)
	}
	return fmt.Errorf("%w: by %s", belay.ErrHeld, describe(h))
}

// openHeld reads a session that was taken hold of, or lets go of it again.
func (s *Store) openHeld(ctx context.Context, session string, epoch int64) (*belay.Stored, error) {
	stored, err := s.stored(ctx, session)
	if err == nil {
		return stored, nil
	}
	released := s.Release(context.WithoutCancel(ctx), session, epoch)
	return nil, errors.Join(fmt.Errorf("open session %q: %w", session, s.explain(causeOf(ctx, err))), released)
}

// stored reads what Open tells, as of one moment.
func (s *Store) stored(ctx context.Context, session string) (*belay.Stored, error) {
	var stored *belay.Stored
	err := s.look(ctx, func(q *table.Queries) error {
		row, err := q.SessionRow(ctx, session)
		if err != nil {
			return err
		}
		stored = &belay.Stored{Epoch: row.Epoch, Last: row.Last}
		if err := decode(row.State, &stored.State); err != nil {
			return err
		}
		if stored.Messages, err = visible(ctx, q, row); err != nil {
			return err
		}
		if row.Response == 0 {
			return readApprovals(ctx, q, row, stored)
		}
		calls, err := q.CallsOf(ctx, table.CallsOfParams{Session: session, Message: row.Response})
		if err != nil {
			return err
		}
		if stored.Calls, err = all(calls, callOf); err != nil {
			return err
		}
		return readApprovals(ctx, q, row, stored)
	})
	return stored, err
}

func readApprovals(ctx context.Context, q *table.Queries, row table.Session, stored *belay.Stored) error {
	asked, err := q.ApprovalsSince(ctx, table.ApprovalsSinceParams{Session: row.ID, Response: row.Response})
	if err != nil {
		return err
	}
	stored.Approvals, err = all(asked, approvalOf)
	return err
}

// visible reads what the model sees of a session, as belay.Visible says: the last
// compaction, what it keeps, and what came after it.
func visible(ctx context.Context, q *table.Queries, row table.Session) ([]*belay.Message, error) {
	from := row.Compaction
	if row.Keep > 0 && row.Keep < from {
		from = row.Keep
	}
	bodies, err := q.MessagesFrom(ctx, table.MessagesFromParams{Session: row.ID, Seq: from})
	if err != nil {
		return nil, err
	}
	messages, err := all(bodies, messageOf)
	if err != nil || row.Compaction == 0 {
		return messages, err
	}
	seen := make([]*belay.Message, 1, len(messages))
	for _, m := range messages {
		switch {
		case m.Seq == row.Compaction:
			seen[0] = m
		case m.Seq > row.Compaction || !m.IsCompaction: // this one stands for those before it
			seen = append(seen, m)
		}
	}
	return seen, nil
}

// look reads as of one moment.
func (s *Store) look(ctx context.Context, f func(q *table.Queries) error) error {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err //nolint:wrapcheck // the caller says what for
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	return f(s.read.WithTx(tx))
}

// Release lets go of a session. The wrong epoch is harmless.
func (s *Store) Release(ctx context.Context, session string, epoch int64) error {
	err := s.submit(ctx, func(ctx context.Context, w *writing) error {
		return w.ReleaseSession(ctx, table.ReleaseSessionParams{ID: session, Epoch: epoch, Holder: s.id})
	})
	if err != nil {
		return fmt.Errorf("release session %q: %w", session, err)
	}
	return nil
}
