package serve_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
)

// column returns the cells of a column of a report.
func column(t *testing.T, r *api.AuditReport, name string) (cells []string) {
	t.Helper()
	i := slices.IndexFunc(r.Columns, func(c api.AuditColumn) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the report has no column %q: %+v", name, r.Columns)
	}
	for _, row := range r.Rows {
		cells = append(cells, row[i])
	}
	return cells
}

// The API answers the questions of an audit. A token that is limited to labels gets only what its
// sessions did.
//
// SPEC O-03
func TestAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manyHooks(), nil)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleRead)
	mine, other := w.labelled(), w.newSession()
	w.turn("admin", mine, "call list {}")
	w.turn("admin", other, needsApproval) // a hook denies it

	ask := func(as, path string) (r api.AuditReport) {
		w.call(as, "GET", "/v1/audit/"+path, nil, &r)
		return r
	}
	denials := ask("admin", "denials")
	if got := column(t, &denials, "denied_by"); !slices.Equal(got, []string{"project/second"}) || column(t, &denials, "reason")[0] != "no writing here" {
		t.Errorf("the denials are %v", denials.Rows)
	}
	tools := ask("admin", "tools")
	if got := column(t, &tools, "tool"); len(got) != 2 || tools.Total != 2 {
		t.Errorf("the tools are %v", tools.Rows)
	}
	if got := ask("admin", "tools?limit=1"); len(got.Rows) != 1 || got.Total != 2 {
		t.Errorf("with a limit: %+v", got)
	}
	if got := ask("admin", "tools?session="+mine); len(got.Rows) != 1 || got.Rows[0][0] != "list" {
		t.Errorf("of one session: %+v", got)
	}
	if got := ask("admin", "tools?since=2999-01-01T00:00:00Z"); len(got.Rows) != 0 || got.Empty == "" {
		t.Errorf("of the future: %+v", got)
	}
	for path, want := range map[string]int{"tools": 1, "denials": 0, "touched?label=tenant=b": 0} {
		if got := ask("a", path); len(got.Rows) != want {
			t.Errorf("the tenant asks %s, and gets %v", path, got.Rows)
		}
	}
	costs := ask("admin", "cost?by=label:tenant")
	if keys, turns := column(t, &costs, "label:tenant"), column(t, &costs, "turns"); !slices.Equal(keys, []string{"(none)", "a"}) || !slices.Equal(turns, []string{"1", "1"}) {
		t.Errorf("the costs are %v", costs.Rows)
	}
	for _, question := range []string{"slow", "failures", "approvals", "grants", "cost?by=day", "touched"} {
		if got := ask("admin", question); len(got.Columns) == 0 {
			t.Errorf("%s has no columns", question)
		}
	}
	slow := ask("a", "slow")
	if runs := column(t, &slow, "runs"); !slices.Contains(runs, "1") {
		t.Errorf("the tenant's hooks are %v", slow.Rows)
	}
	if p := w.send("admin", "GET", "/v1/audit/cost?session="+mine, nil, nil).problem(t); p.Status != 422 || p.Field != "/session" {
		t.Errorf("costs of one session: %+v", p)
	}
	if p := w.send("admin", "GET", "/v1/audit/moon", nil, nil).problem(t); p.Status != 422 || p.Field != "/question" {
		t.Errorf("a question that does not exist: %+v", p)
	}
}

// A backtest over the API asks the hooks as their files are now. It is for tokens that see all
// sessions and may run turns.
//
// SPEC O-02
func TestBacktest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{".belay/hooks/all.yaml": "hooks:\n  - {id: noted, phase: tool.pre, action: log}\n"}, nil)
	w.token("a", map[string]string{"tenant": "a"}, serve.RoleAdmin)
	w.token("reader", nil, serve.RoleRead)
	session := w.newSession()
	w.turn("admin", session, "call list {}")

	run := func(in api.Backtest) (r backtest.Report) {
		w.call("admin", "POST", "/v1/backtest", in, &r)
		return r
	}
	if r := run(api.Backtest{}); r.Sessions != 1 || r.Calls != 1 || len(r.Differences) != 0 {
		t.Errorf("the same policy: %+v", r)
	}
	changed := "hooks:\n  - {id: closed, phase: tool.pre, match: {tools: [list]}, action: {deny: listing is over}}\n"
	if err := os.WriteFile(filepath.Join(w.dir, ".belay", "hooks", "all.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(api.Backtest{Session: session})
	if len(r.Differences) != 1 || r.Differences[0].Now.Outcome != backtest.Denied || r.Differences[0].Now.By != "project/closed" || r.Differences[0].Was.Outcome != backtest.Allowed {
		t.Errorf("a changed hook: %+v", r)
	}
	if r := run(api.Backtest{Rules: "permit:\n  rules: [deny list(**)]\n"}); len(r.Differences) != 1 {
		t.Errorf("other rules: %+v", r)
	}
	for name, test := range map[string]struct {
		as   string
		in   api.Backtest
		want int
	}{
		"a token of a tenant":        {"a", api.Backtest{}, 404},
		"a token that may only read": {"reader", api.Backtest{}, 403},
		"a mode that does not exist": {"admin", api.Backtest{Mode: "moon"}, 422},
		"rules that are no rules":    {"admin", api.Backtest{Rules: "permit: {rules: [forbid x]}"}, 422},
		"a session without records":  {"admin", api.Backtest{Session: "nowhere"}, 404},
	} {
		if p := w.send(test.as, "POST", "/v1/backtest", test.in, nil).problem(t); p.Status != test.want {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
