package serve_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// grants returns the grants that a token sees, page by page.
func (w *world) grants(as, query string) (ids []string) {
	w.t.Helper()
	for after := ""; ; {
		var page api.GrantList
		w.call(as, "GET", "/v1/grants?limit=1&after="+after+query, nil, &page)
		for i := range page.Grants {
			ids = append(ids, page.Grants[i].Session+" "+page.Grants[i].Tool)
		}
		if after = page.Next; after == "" {
			return ids
		}
	}
}

// An approval that covers more than one call is listed, and taken back: then the next call needs
// approval again. A token sees and revokes only grants of its own sessions, and needs the role.
//
// SPEC V-02, V-05
func TestGrants(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, strict)
	w.token("reader", nil, serve.RoleRead, serve.RoleRun)
	w.token("ann", map[string]string{"user": "ann"}, serve.RoleRun, serve.RoleApprove)
	var mine session
	w.call("ann", "POST", "/v1/sessions", map[string]any{}, &mine)
	other := w.newSession()
	for as, id := range map[string]string{"ann": mine.ID, "admin": other} {
		parked := w.turn(as, id, needsApproval)
		var one api.Approval
		w.call(as, "GET", "/v1/approvals/"+parked.Result.Approvals[0], nil, &one)
		w.call(as, "POST", "/v1/approvals/"+one.ID+"/decision", map[string]any{"hash": one.Hash, "allow": true, "scope": "session"}, nil)
		eventually(t, "the grant is stored", func() bool { return len(w.grants(as, "&session="+id)) == 1 })
		eventually(t, "the turn has ended", func() bool {
			var s session
			w.call(as, "GET", "/v1/sessions/"+id, nil, &s)
			return s.State == "done"
		})
	}
	want := []string{mine.ID + " write", other + " write"}
	slices.Sort(want)
	if all := slices.Sorted(slices.Values(w.grants("admin", ""))); !slices.Equal(all, want) {
		t.Errorf("the grants are %q, want %q", all, want)
	}
	if all := w.grants("ann", ""); !slices.Equal(all, []string{mine.ID + " write"}) {
		t.Errorf("the grants of a tenant are %q", all)
	}
	var list api.GrantList
	w.call("admin", "GET", "/v1/grants?session="+other, nil, &list)
	path := "/v1/sessions/" + other + "/grants/" + list.Grants[0].Approval
	if p := w.send("reader", "DELETE", path, nil, nil).problem(t); p.Status != http.StatusForbidden {
		t.Errorf("a token without the role revokes: %+v", p)
	}
	if p := w.send("ann", "DELETE", path, nil, nil).problem(t); p.Status != http.StatusNotFound {
		t.Errorf("a token of another tenant revokes: %+v", p)
	}
	if r := w.turn("admin", other, needsApproval).Result; r.Reason != belay.EndTurn {
		t.Errorf("a call that the grant covers ends with %+v", r)
	}
	w.call("admin", "DELETE", path, nil, nil)
	if p := w.send("admin", "DELETE", path, nil, nil).problem(t); p.Status != http.StatusNotFound {
		t.Errorf("a grant is revoked twice: %+v", p)
	}
	if all := w.grants("admin", ""); !slices.Equal(all, []string{mine.ID + " write"}) {
		t.Errorf("after the revocation the grants are %q", all)
	}
	if r := w.turn("admin", other, needsApproval).Result; r.Reason != belay.EndParked {
		t.Errorf("a call that the revoked grant covered ends with %+v, want it parked", r)
	}
}

// While a turn of the session runs, its grants cannot be revoked, and the answer says why.
//
// SPEC V-02
func TestRevokeDuringATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, nil)
	w.model.asked = make(chan string, 1)
	id := w.newSession()
	w.call("admin", "POST", "/v1/sessions/"+id+"/turns", map[string]any{"text": "block"}, nil)
	<-w.model.asked
	if p := w.send("admin", "DELETE", "/v1/sessions/"+id+"/grants/ap-x", nil, nil).problem(t); p.Status != http.StatusConflict || p.Code != "session.held" {
		t.Errorf("a grant is revoked while the turn runs: %+v", p)
	}
	close(w.model.gate)
}
