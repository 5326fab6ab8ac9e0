package sqlite

import (
	"context"
	"fmt"
	"iter"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/internal/record"
)

// List yields the runs that match when the iteration begins, each once, ordered by start
// time and then by position. If a run is replaced during the iteration, the caller may get
// the new state at the old position.
func (j *journal) List(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	s := (*Store)(j)
	return func(yield func(hook.Run, error) bool) {
		if err := record.Runs(ctx, s.reader, filter, func(r hook.Run) bool { return yield(r, nil) }); err != nil {
			yield(hook.Run{}, fmt.Errorf("list runs: %w", s.explain(err)))
		}
	}
}
