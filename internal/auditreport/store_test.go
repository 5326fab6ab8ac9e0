package auditreport_test

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/auditreport"
	"github.com/belay-run/belay/internal/pgtest"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/postgres"
	"github.com/belay-run/belay/store/sqlite"
)

// stored is a store with sessions, approvals and records of hooks.
type stored interface {
	belay.JournalStore
	belay.ListStore
	belay.ManageStore
}

// storeSource are the records of any store.
type storeSource struct{ stored }

func (s storeSource) Runs(ctx context.Context, since time.Time, states []hook.State) iter.Seq2[hook.Run, error] {
	return s.Journal().(hook.ListJournal).List(ctx, hook.Filter{Since: since, States: states})
}

func (s storeSource) Usage(ctx context.Context, labels map[string]string, since time.Time, by string) ([]belay.UsageSum, error) {
	filter := belay.UsageFilter{Since: since, Labels: labels}
	key, label, _ := strings.Cut(by, ":")
	filter.By, filter.Label = belay.UsageKey(key), label
	return s.stored.(belay.UsageStore).Usage(ctx, filter)
}

// noon is when the approvals of the test were asked.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// decided is who decided an approval, and after how long. Nobody means that it is open.
type decided struct {
	id, by string
	after  time.Duration
	allow  bool
	reason string
}

// fill stores a session with a label, a response that has cost something, approvals and grants.
func fill(t *testing.T, store stored, session, team string, cost float64, approvals []decided, grants ...belay.Grant) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(store.Describe(ctx, session, belay.SessionUpdate{Labels: map[string]string{"team": team}}))
	hold, err := store.Open(ctx, session)
	check(err)
	message := func(seq int64, role belay.Role, kind belay.MessageKind, usage *belay.Usage) *belay.Message {
		return &belay.Message{Seq: seq, Turn: "turn", Role: role, Kind: kind, Parts: []belay.Part{belay.Text("a text")}, Time: noon, Model: "m/one", Usage: usage}
	}
	c := &belay.Commit{
		Session: session, Epoch: hold.Epoch, State: &belay.SessionState{Agent: "main", Turns: 1, Grants: grants},
		Messages: []*belay.Message{message(1, belay.RoleUser, belay.KindUser, nil), message(2, belay.RoleAssistant, belay.KindAssistant, &belay.Usage{In: 100, Out: 10, Cost: cost})},
	}
	for _, d := range approvals {
		c.Approvals = append(c.Approvals, belay.Approval{ID: d.id, Session: session, Turn: "turn", Call: "call-" + d.id, Tool: "shell", Hash: "sha256:" + d.id, Reason: "it deletes", By: "floor", Floor: true, Asked: noon})
	}
	check(store.Commit(ctx, c))
	check(store.Release(ctx, session, hold.Epoch))
	for _, d := range approvals {
		if d.by != "" {
			_, err := store.Decide(ctx, belay.Decision{Approval: d.id, Hash: "sha256:" + d.id, Allow: d.allow, By: d.by, Reason: d.reason, Time: noon.Add(d.after)})
			check(err)
		}
	}
}

// stores returns a store of each kind.
func stores(t *testing.T) map[string]stored {
	t.Helper()
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
	return map[string]stored{"memory": memstore.New(nil), "sqlite": file, "postgres": database}
}

// Every store says who decided and after how long, which grants are in force and who gave them, and
// what each value of a label has cost.
//
// SPEC O-03
func TestApprovalsGrantsAndCosts(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		fill(t, store, "a", "red", 0.25, []decided{
			{"a1", "ann", time.Second, true, "fine"},
			{"a2", "ann", 3 * time.Second, false, "no"},
			{"a3", "ann", 10 * time.Second, true, ""},
			{"a4", "ann", 0, true, "allowed before, with approval a1"},
			{"a5", "", 0, false, ""},
		},
			belay.Grant{Approval: "a1", Asker: "floor", Tool: "shell", Pattern: "shell(git *)", By: "ann", Time: noon.Add(time.Second)},
			belay.Grant{Approval: "a3", Asker: "project/gate", Tool: "write", By: "ann", Time: noon.Add(10 * time.Second)})
		fill(t, store, "b", "blue", 0.5, []decided{{"b1", "bob", time.Minute, true, ""}, {"b2", "bob", 2 * time.Minute, true, ""}},
			belay.Grant{Approval: "b1", Asker: "floor", Tool: "shell", Pattern: "shell(make *)", By: "bob", Time: noon.Add(time.Minute)})
		fill(t, store, "c", "blue", 1, nil)
		from := storeSource{store}
		blue := auditreport.Filter{Labels: map[string]string{"team": "blue"}}
		grants := []string{"grant", "session", "allows", "asker", "by", "given"}
		delays := []string{"by", "approvals", "allowed", "denied", "median_delay", "max_delay", "last"}
		byLabel, costs := auditreport.Filter{By: "label:team"}, []string{"label:team", "sessions", "turns", "tokens_in", "tokens_out", "cost"}

		open := askFor(t, from, auditreport.Filter{Session: "a"}, "approvals", "by", "approvals", "allowed", "denied")
		if want := []string{"ann 3 2 1", "(undecided) 1 0 0"}; !slices.Equal(open, want) {
			t.Errorf("%s: the approvals of a are %q, want %q", name, open, want)
		}
		decisions := slices.DeleteFunc(ask(t, from, "approvals", delays...), func(row string) bool { return strings.HasPrefix(row, "(undecided)") }) // its delay grows
		for what, test := range map[string]struct{ got, want []string }{
			"the decisions":                     {decisions, []string{"ann 3 2 1 3 10 2026-03-01T12:00:10Z", "bob 2 2 0 60 120 2026-03-01T12:02:00Z"}},
			"the decisions about blue sessions": {askFor(t, from, blue, "approvals", delays...), []string{"bob 2 2 0 60 120 2026-03-01T12:02:00Z"}},
			"the grants": {sorted(ask(t, from, "grants", grants...)), []string{
				"a1 a shell(git *) floor ann 2026-03-01T12:00:01Z", "a3 a all of write project/gate ann 2026-03-01T12:00:10Z", "b1 b shell(make *) floor bob 2026-03-01T12:01:00Z",
			}},
			"the grants of blue sessions": {askFor(t, from, blue, "grants", "grant", "by"), []string{"b1 bob"}},
		} {
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", name, what, diff)
			}
		}
		if _, ok := store.(belay.UsageStore); !ok {
			continue // a store in memory cannot add up
		}
		if diff := cmp.Diff([]string{"blue 2 2 200 20 1.5", "red 1 1 100 10 0.25"}, sorted(askFor(t, from, byLabel, "cost", costs...))); diff != "" {
			t.Errorf("%s: the costs (-want +got):\n%s", name, diff)
		}
	}
}

func sorted(rows []string) []string {
	slices.Sort(rows)
	return rows
}
