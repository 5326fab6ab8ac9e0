package hooktest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/hooktest"
)

// slate is a simple journal with functions that a fault can replace. Without a fault it
// passes every rule.
type slate struct {
	mu   sync.Mutex
	runs []hook.Run

	// append replaces Append. The caller holds s.mu.
	append func(ctx context.Context, runs []hook.Run) error
	// check rejects a single run.
	check func(run hook.Run) error
	// upsert decides what happens to a run with an existing id.
	upsert func(stored, run hook.Run) (kept hook.Run, err error)
	// store changes a run before it is stored.
	store func(run *hook.Run)
	// moves says that a changed run moves to the end of the list.
	moves bool
	// halves says that a rejected batch stores the runs before the rejected run.
	halves bool
	// read changes the runs before they are filtered.
	read func(runs []hook.Run) []hook.Run
	// filter selects the runs that match the filter.
	filter func(f hook.Filter, runs []hook.Run) []hook.Run
	// yield yields the selected runs.
	yield func(ctx context.Context, runs []hook.Run) iter.Seq2[hook.Run, error]
}

func newSlate() *slate {
	s := &slate{
		check: func(run hook.Run) error {
			if run.ID == "" || run.State < hook.Started || run.State > hook.Interrupted {
				return errors.New("no id or no state")
			}
			return nil
		},
		upsert: func(stored, run hook.Run) (hook.Run, error) {
			switch {
			case !stored.State.Final():
				return run, nil
			case run.State.Final() && run.State != stored.State:
				return stored, hook.ErrSettled
			default:
				return stored, nil
			}
		},
		store: func(*hook.Run) {},
		read:  func(runs []hook.Run) []hook.Run { return runs },
		filter: func(f hook.Filter, runs []hook.Run) []hook.Run {
			runs = slices.DeleteFunc(runs, func(r hook.Run) bool { return !f.Match(r) })
			if f.Newest {
				slices.Reverse(runs)
			}
			return limited(runs, f.Limit)
		},
		yield: func(ctx context.Context, runs []hook.Run) iter.Seq2[hook.Run, error] {
			return func(yield func(hook.Run, error) bool) {
				for _, run := range runs {
					if err := ctx.Err(); err != nil {
						yield(hook.Run{}, err)
						return
					}
					if !yield(run, nil) {
						return
					}
				}
			}
		},
	}
	s.append = func(_ context.Context, runs []hook.Run) error { return s.keep(runs) }
	return s
}

func limited(runs []hook.Run, limit int) []hook.Run {
	if limit > 0 && len(runs) > limit {
		return runs[:limit]
	}
	return runs
}

func (s *slate) Append(ctx context.Context, runs []hook.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(ctx, runs)
}

// keep stores a batch. The caller holds s.mu.
func (s *slate) keep(runs []hook.Run) error {
	next := slices.Clone(s.runs)
	for _, run := range runs {
		after, err := s.place(next, run)
		if err != nil {
			if s.halves {
				s.runs = next
			}
			return err
		}
		next = after
	}
	s.runs = next
	return nil
}

func (s *slate) place(runs []hook.Run, run hook.Run) ([]hook.Run, error) {
	if err := s.check(run); err != nil {
		return nil, err
	}
	s.store(&run)
	at := slices.IndexFunc(runs, func(r hook.Run) bool { return r.ID == run.ID })
	if at < 0 {
		return append(runs, run), nil
	}
	kept, err := s.upsert(runs[at], run)
	if err != nil {
		return nil, err
	}
	if s.moves {
		return append(slices.Delete(runs, at, at+1), kept), nil
	}
	runs[at] = kept
	return runs, nil
}

func (s *slate) List(ctx context.Context, f hook.Filter) iter.Seq2[hook.Run, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.yield(ctx, s.filter(f, s.read(slices.Clone(s.runs))))
}

func TestSlateKeepsTheRulesItIsToBreak(t *testing.T) {
	t.Parallel()
	hooktest.TestJournal(t, func(testing.TB) hook.Journal { return newSlate() })
}
