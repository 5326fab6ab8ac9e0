package sqlite

import (
	"context"
	"fmt"
	"iter"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Read yields the messages of a session with numbers higher than after. It does not yield
// messages that are stored during the iteration.
func (s *Store) Read(ctx context.Context, session string, after int64) iter.Seq2[*belay.Message, error] {
	return func(yield func(*belay.Message, error) bool) {
		err := record.Messages(ctx, s.read, session, after, func(m *belay.Message) bool { return yield(m, nil) })
		if err != nil {
			yield(nil, fmt.Errorf("read session %q: %w", session, s.explain(err)))
		}
	}
}
