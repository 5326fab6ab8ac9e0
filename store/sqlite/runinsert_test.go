package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// dispatch returns the runs of a dispatch with 100 hooks.
func dispatch(n int) []hook.Run {
	runs := make([]hook.Run, 100)
	for i := range runs {
		runs[i] = run(fmt.Sprintf("run-%04d-%03d", n, i), hook.Completed)
		runs[i].Subscription, runs[i].Dispatch = fmt.Sprint("gate-", i), fmt.Sprint("dispatch-", n)
		runs[i].Started = runs[0].Started.Add(time.Duration(i))
	}
	return runs
}

func wantCount(t testing.TB, s *sqlite.Store, what string, want int) {
	t.Helper()
	var got int
	if err := s.QueryRow(t.Context(), "SELECT count(*) FROM "+what, &got); err != nil || got != want {
		t.Errorf("%s has %d rows, %v, want %d", what, got, err, want)
	}
}

// The runs of one dispatch take one row, and dispatches with the same hooks share the list
// of hooks. All counts are counts of runs.
func TestRunsShareARow(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	for n := range 3 {
		appendRuns(t, s, dispatch(n)...)
		appendRuns(t, s, dispatch(n)[20:60]...) // these runs are stored already
	}
	wantCount(t, s, "runs", 3)
	wantCount(t, s, "run_hooks", 99)
	health, err := s.Check(ctx)
	if err != nil || health.Runs != 300 || len(health.Problems) > 0 {
		t.Errorf("the check finds %d runs and the problems %q, %v, want 300 runs", health.Runs, health.Problems, err)
	}

	// A run that is stored in a row of its own does not get into a folded row.
	begun, rest := dispatch(3), dispatch(3)
	begun[50].State, begun[50].Ended = hook.Started, time.Time{}
	appendRuns(t, s, begun[50])
	appendRuns(t, s, rest...)
	wantCount(t, s, "runs WHERE dispatch = 'dispatch-3' AND state = 'completed'", 100)

	did, err := s.Prune(ctx, sqlite.Retention{MaxBytes: 1})
	if err != nil || did.Runs != 400 {
		t.Errorf("Prune removes %d runs, %v, want 400", did.Runs, err)
	}
	wantCount(t, s, "runs", 0)
	wantCount(t, s, "run_hooks", 0)
	appendRuns(t, s, dispatch(0)...) // the list of hooks is stored again
	wantCount(t, s, "run_hooks", 99)
	if got := states(t, s, hook.Filter{Subscription: "gate-7"}); len(got) != 1 {
		t.Errorf("the runs of a subscription are %q", got)
	}
}

// Prune also counts the runs of folded rows whose session is gone.
func TestPruneFoldedOrphans(t *testing.T) {
	t.Parallel()
	s, old := open(t, nil), dispatch(0)
	for i := range old {
		old[i].Started = old[i].Started.Add(-time.Hour)
	}
	appendRuns(t, s, old...)
	appendRuns(t, s, dispatch(1)...)
	did, err := s.Prune(t.Context(), sqlite.Retention{Age: time.Minute})
	if err != nil || did.Runs != 100 {
		t.Errorf("Prune removes %d runs, %v, want 100", did.Runs, err)
	}
	wantCount(t, s, "runs", 1)
}

// A damaged folded row is reported by Check, and by each listing that reads it.
func TestDamagedFoldedRow(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"a text that is cut off":  "UPDATE runs SET folded = substr(folded, 1, length(folded) - 3)",
		"another number of runs":  "UPDATE runs SET more = more - 1",
		"a number with a letter":  "UPDATE runs SET folded = 'x' || folded",
		"a missing list of hooks": "DELETE FROM run_hooks",
		"a missing hook":          "DELETE FROM run_hooks WHERE idx = 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, nil)
			tampered.Store(s, true)
			appendRuns(t, s, dispatch(0)...)
			execute(t, s.Path(), damage)
			health, err := s.Check(t.Context())
			if err != nil || len(health.Problems) != 1 || !strings.Contains(health.Problems[0], "run-0000-000") {
				t.Errorf("the check finds %q, %v, want the damaged row", health.Problems, err)
			}
			for _, filter := range []hook.Filter{{}, {Limit: 5, Newest: true}, {Session: "a"}} {
				var failed error
				for _, err := range s.Journal().(hook.ListJournal).List(t.Context(), filter) {
					failed = err
				}
				if failed == nil || !strings.Contains(failed.Error(), "run-0000-000") || !strings.Contains(failed.Error(), "damaged") {
					t.Errorf("%+v gives %v, want an error that names the row", filter, failed)
				}
			}
		})
	}
}

// A listing can run while Prune removes rows.
func TestListWhileRowsGo(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	for n := range 600 { // more than two pages
		appendRuns(t, s, dispatch(n)[:4]...)
	}
	seen := 0
	for _, err := range s.Journal().(hook.ListJournal).List(t.Context(), hook.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 10 {
			if _, err := s.Prune(t.Context(), sqlite.Retention{MaxBytes: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if seen < 10 || seen > 4*600 {
		t.Errorf("%d runs are listed", seen)
	}
}

// Storing the runs of one dispatch takes a few allocations for each run. A statement for each
// run would take more than 60.
func TestRunsShareStatements(t *testing.T) { //nolint:paralleltest // it counts allocations
	s, n := open(t, nil), 0
	var batches [][]hook.Run
	for n := range 25 {
		batches = append(batches, dispatch(n))
	}
	got := testing.AllocsPerRun(20, func() {
		if err := s.Journal().Append(context.Background(), batches[n]); err != nil {
			t.Error(err)
		}
		n++
	})
	if got > 300 {
		t.Errorf("storing 100 runs takes %.0f allocations, want at most 300", got)
	}
}

// The runs of one dispatch change few pages, although each run has another subscription.
func TestRunsChangeFewPages(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	const before, most = 120, 16
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

// A program that does not know folded rows cannot open the file. The migration can be undone
// only if there are no folded rows.
func TestFoldedRunsOfAnOlderProgram(t *testing.T) {
	t.Parallel()
	s := open(t, nil)
	var oldest int
	if err := s.QueryRow(t.Context(), "SELECT value FROM counters WHERE name = 'oldest'", &oldest); err != nil || oldest != 16 {
		t.Errorf("programs that know version %d can open the file, %v, want 16", oldest, err)
	}
	appendRuns(t, s, dispatch(0)...)
	if err := s.MigrateDown(t.Context(), 12); err == nil || !strings.Contains(err.Error(), "runs are folded: restore a backup") {
		t.Errorf("undoing the migration gives %v, want a refusal", err)
	}
	if got := states(t, s, hook.Filter{}); len(got) != 100 {
		t.Errorf("%d runs are listed after the refusal, want 100", len(got))
	}
	if err := s.Execute(t.Context(), "DELETE FROM runs"); err != nil {
		t.Fatal(err)
	}
	if err := s.MigrateDown(t.Context(), 12); err != nil {
		t.Error(err)
	}
	wantCount(t, s, "pragma_table_info('runs') WHERE name IN ('more', 'hooks', 'folded')", 0)
}
