package sqlite

import (
	"context"
	"fmt"
	"iter"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// List yields the runs that match when the iteration begins, each once: the one
// that started first comes first, and of those that started at one moment the one that
// was stored first. One that is replaced meanwhile may be told as it is then, in its
// place.
func (j *journal) List(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := record.Runs(ctx, s.reader, filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("list runs: %w", s.explain(err)))
		}
	}
}
