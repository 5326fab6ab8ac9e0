package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/table"
)

// messagePage is how many messages are read at a time. No connection is held
// while the caller looks at them.
const messagePage = 128

// Read yields the messages of a session behind the one numbered after, as they
// are when the iteration begins.
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		err := s.readMessages(ctx, session, after, func(m *belay.Message) bool { return yield(m, nil) })
		if err != nil {
			yield(nil, fmt.Errorf("read session %q: %w", session, s.explain(err)))
		}
	}
}

func (s *Store) readMessages(ctx context.Context, session string, after int64, yield func(*belay.Message) bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	row, err := s.read.SessionRow(ctx, session)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return belay.ErrNotFound
	case err != nil:
		return causeOf(ctx, err)
	}
	for after < row.Last {
		bodies, err := s.read.MessagesBetween(ctx, table.MessagesBetweenParams{Session: session, After: after, Until: row.Last, Count: messagePage})
		if err != nil {
			return causeOf(ctx, err)
		}
		if len(bodies) == 0 {
			return nil // it was removed meanwhile
		}
		for _, body := range bodies {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			m, err := messageOf(body)
			if err != nil {
				return err
			}
			if after = m.Seq; !yield(m) {
				return nil
			}
		}
	}
	return nil
}

// causeOf says why a reading was cancelled, if it was.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
