package serve_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// parkTurns makes turns that wait for approval, in sessions of the tenants a and b by turns. It
// returns the ids of the approvals of both, and of a alone.
func (w *world) parkTurns(count int) (all, ofA []string) {
	w.t.Helper()
	for i := range count {
		session := w.labelled()
		if i%2 == 1 {
			w.relabel(session, "b")
		}
		all = append(all, w.turn("admin", session, needsApproval).Result.Approvals[0])
		if i%2 == 0 {
			ofA = append(ofA, all[i])
		}
	}
	return all, ofA
}

// The pages of a list of approvals have every approval that the token may see, and each once.
// The last id of one tenant is no cursor for another.
//
// SPEC V-02, V-05
func TestApprovalPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, strict)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleRead)
	all, ofA := w.parkTurns(9)
	for _, c := range []struct {
		as    string
		limit int
		want  []string
	}{{"admin", 1, all}, {"admin", 4, all}, {"admin", 9, all}, {"admin", 500, all}, {"a", 1, ofA}, {"a", 4, ofA}, {"a", 5, ofA}} {
		var got []string
		for after, page := "", 0; page == 0 || after != ""; page++ {
			var list api.ApprovalList
			w.call(c.as, http.MethodGet, fmt.Sprintf("/v1/approvals?all=true&limit=%d&after=%s", c.limit, after), nil, &list)
			if len(list.Approvals) > c.limit || list.Next != "" && len(list.Approvals) < c.limit {
				t.Fatalf("%s gets %d approvals of %d, and another page after %q", c.as, len(list.Approvals), c.limit, list.Next)
			}
			for i := range list.Approvals {
				got = append(got, list.Approvals[i].ID)
			}
			after = list.Next
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s gets in pages of %d: %v, want %v", c.as, c.limit, got, c.want)
		}
	}
	for _, cursor := range []string{"nobody", all[1]} {
		if r := w.send("a", http.MethodGet, "/v1/approvals?all=true&after="+cursor, nil, nil); r.status != http.StatusBadRequest {
			t.Errorf("the cursor %s gives %d %s", cursor, r.status, r.body)
		}
	}
}

// A list of runs is filled, although most records are not for the token, or not for everybody.
//
// SPEC V-02, V-05
func TestRunsBehindOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleRead)
	mine, others := w.labelled(), w.newSession()
	store, ok := w.host.Store().(belay.JournalStore)
	if !ok {
		t.Fatal("the store has no journal")
	}
	journal := store.Journal()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	runs := make([]hook.Run, 200) // one commit for all
	for i := range runs {
		r := hook.Run{
			ID: fmt.Sprint("run-", i), Dispatch: fmt.Sprint("d-", i), Phase: "tool.pre", Subscription: "s", State: hook.Completed, Visibility: hook.VisibleInAudit,
			Scope: hook.Scope{Session: others, Turn: "t"}, Started: begin.Add(time.Duration(i) * time.Second),
		}
		if i < 3 {
			r.Scope.Session = mine
		} else if i >= 150 {
			r.Visibility = hook.VisibleInDebug
		}
		runs[i] = r
	}
	if err := journal.Append(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		as, query string
		want      []string
	}{
		{"a", "limit=2", []string{"run-2", "run-1"}},
		{"a", "limit=5", []string{"run-2", "run-1", "run-0"}},
		{"admin", "limit=1", []string{"run-149"}},
		{"admin", "limit=1&all=true", []string{"run-199"}},
	} {
		var list api.RunList
		w.call(c.as, http.MethodGet, "/v1/runs?"+c.query, nil, &list)
		var got []string
		for i := range list.Runs {
			got = append(got, list.Runs[i].ID)
		}
		if !slices.Equal(got, c.want) || list.Partial {
			t.Errorf("%s gets with %s: %v (partial: %t), want %v", c.as, c.query, got, list.Partial, c.want)
		}
	}
}
