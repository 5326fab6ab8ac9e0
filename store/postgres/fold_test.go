package postgres_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/postgres"
)

// The store does not fold runs yet, but it reads, follows, exports, counts and removes
// folded rows.
//
// SPEC J-08
func TestReadFoldedRuns(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), open(t, nil)
	stored := hold(t, s, "b")
	commit(t, s, say("b", stored.Epoch, 1, "hello"))
	followed := follow(t, s)
	runs := make([]hook.Run, 100)
	for i := range runs {
		runs[i] = run(fmt.Sprint("run-", i), hook.Completed)
		runs[i].Subscription, runs[i].Scope.Session, runs[i].Started = fmt.Sprint("gate-", i), "b", time.Now().Add(-time.Hour)
	}
	if err := s.AppendFolded(ctx, runs); err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		select {
		case id := <-followed:
			if id != r.ID {
				t.Fatalf("the follower gets %s, want %s", id, r.ID)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the follower does not get %s", r.ID)
		}
	}
	if got := states(t, s, hook.Filter{Subscription: "gate-70"}); len(got) != 1 || got[0] != "run-70 completed" {
		t.Errorf("the runs of a subscription are %q", got)
	}
	var out strings.Builder
	if err := s.Export(ctx, &out, "b"); err != nil || strings.Count(out.String(), `{"type":"run"`) != 100 {
		t.Errorf("the export has %d runs, %v, want 100", strings.Count(out.String(), `{"type":"run"`), err)
	}
	if health, err := s.Check(ctx); err != nil || health.Runs != 101 {
		t.Errorf("the check counts %d runs, %v, want 101", health.Runs, err)
	}
	if err := s.Delete(ctx, "b"); err == nil {
		t.Error("Delete removes a session that is held")
	}
	if err := s.Release(ctx, "b", stored.Epoch); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		runs[i].ID, runs[i].Scope.Session = fmt.Sprint("orphan-", i), "gone"
	}
	if err := s.AppendFolded(ctx, runs); err != nil {
		t.Fatal(err)
	}
	keep := postgres.Retention{Age: time.Minute}
	if would, err := s.Prunable(ctx, keep); err != nil || would.Runs != 100 {
		t.Errorf("Prune would remove %d runs, %v, want 100", would.Runs, err)
	}
	if did, err := s.Prune(ctx, keep); err != nil || did.Runs != 100 {
		t.Errorf("Prune removes %d runs, %v, want 100", did.Runs, err)
	}
}
