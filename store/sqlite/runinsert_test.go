package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/belay-run/belay/hook"
)

// dispatch returns the runs of a dispatch with 100 hooks.
func dispatch(n int) []hook.Run {
	runs := make([]hook.Run, 100)
	for i := range runs {
		runs[i] = run(fmt.Sprintf("run-%d-%d", n, i), hook.Completed)
		runs[i].Subscription, runs[i].Dispatch = fmt.Sprint("gate-", i), fmt.Sprint("dispatch-", n)
	}
	return runs
}

// The runs of one dispatch share a few statements. A statement for each run would take more
// than 60 allocations a run.
func TestRunsShareStatements(t *testing.T) { //nolint:paralleltest // it counts allocations
	s, n := open(t, nil), 0
	got := testing.AllocsPerRun(20, func() {
		n++
		if err := s.Journal().Append(context.Background(), dispatch(n)); err != nil {
			t.Error(err)
		}
	})
	if got > 3000 {
		t.Errorf("storing 100 runs takes %.0f allocations, want at most 3000", got)
	}
}

// The runs of one dispatch change few pages, although each run has another subscription.
func TestRunsChangeFewPages(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	const before, most = 120, 64
	for n := range before {
		appendRuns(t, s, dispatch(n)...)
	}
	if err := s.EmptyLog(t.Context()); err != nil {
		t.Fatal(err)
	}
	appendRuns(t, s, dispatch(before)...)
	log, err := os.Stat(s.Path() + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const header, frame = 32, 24 + 4096
	if pages := (log.Size() - header) / frame; pages < 5 || pages > most {
		t.Errorf("storing 100 runs changed %d pages, want at most %d", pages, most)
	}
}
