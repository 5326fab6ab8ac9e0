package backtest_test

import (
	"context"
	"iter"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// SPEC O-02
func TestEveryStoreGivesTheSameReport(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	database, err := postgres.Open(t.Context(), server.Database(t, "template1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "belay.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, closing := range []interface{ Close() error }{database, file} {
			if err := closing.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	before := belay.Options{Hooks: []hook.Subscription{always("asks", belay.Ask("look first"), nil), approves(belay.Allow("fine"))}}
	after := &backtest.Policy{Hooks: []hook.Subscription{denies("no-prod", "note", "prod"), hides("team")}}
	var first *backtest.Report
	for name, store := range map[string]belay.Store{"memory": memstore.New(nil), "sqlite": file, "postgres": database} {
		record(t, store, "a", before, []scripted.Call{{Tool: "note", Input: `{"path":"prod"}`}, {Tool: "send", Input: `{"to":"team"}`}}, nil)
		record(t, store, "b", belay.Options{}, []scripted.Call{{Tool: "note", Input: `{"path":"prod"}`}})
		report := run(t, store, after, nil)
		if len(report.Differences) != 4 {
			t.Errorf("%s: %d differences, want 4:\n%v", name, len(report.Differences), lines(report))
		}
		if first == nil {
			first = report
		}
		if diff := cmp.Diff(lines(first), lines(report)); diff != "" {
			t.Errorf("%s differs from another store:\n%s", name, diff)
		}
		one := run(t, store, after, &backtest.Options{Sessions: []string{"b"}})
		if one.Sessions != 1 || one.Calls != 1 {
			t.Errorf("%s: with one session, %d sessions and %d calls are replayed", name, one.Sessions, one.Calls)
		}
	}
}

// deleting deletes a session after it has listed it.
type deleting struct {
	*memstore.Store

	session string
}

func (d deleting) Sessions(ctx context.Context, filter belay.SessionFilter) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		for s, err := range d.Store.Sessions(ctx, filter) {
			if err == nil && s.ID == d.session {
				err = d.Forget(s.ID)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// A session that somebody deletes meanwhile is no error.
//
// SPEC O-02
func TestSessionsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	for _, session := range []string{"goes", "stays"} {
		record(t, store, session, belay.Options{}, []scripted.Call{{Tool: "note", Input: `{}`}})
	}
	report, err := backtest.Run(t.Context(), deleting{store, "goes"}, &backtest.Policy{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Prompts != 1 || report.Calls != 1 {
		t.Errorf("%d messages and %d calls; want 1 of each", report.Prompts, report.Calls)
	}
}
