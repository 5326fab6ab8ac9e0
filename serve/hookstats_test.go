package serve_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/host"
	"github.com/belay-run/belay/serve"
	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/space"
)

// manyHooks is a project with hooks in each state.
func manyHooks() map[string]string {
	return map[string]string{
		".belay/hooks/all.yaml": `hooks:
  - {id: first, phase: tool.pre, priority: 1, action: log}
  - {id: second, phase: tool.pre, after: [project/first], match: {tools: [write]}, action: {deny: no writing here}}
  - {id: watched, phase: tool.pre, shadow: true, action: log}
  - {id: off, phase: tool.pre, enabled: false, action: log}
  - {id: gate, phase: tool.pre, match: {tools: [edit]}, command: [sh, ./check.sh]}
`,
		".belay/hooks/check.sh": "#!/bin/sh\nexit 0\n",
	}
}

// The graph of the hooks says for each hook whether and why it runs, and where it comes from. A
// gate that is not trusted is closed.
//
// SPEC V-02
func TestHookGraph(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manyHooks(), nil)
	if err := w.journal().Append(t.Context(), []hook.Run{{
		ID: "r-1", Subscription: "project/first", Phase: "tool.pre", State: hook.Failed, Class: codes.Quarantined, Started: time.Now(), Ended: time.Now(), Execution: hook.Blocking, Visibility: hook.VisibleInAudit,
	}}); err != nil {
		t.Fatal(err)
	}
	var graph api.Graph
	w.call("admin", "GET", "/v1/hooks/graph?phase=tool.pre", nil, &graph)
	found := make(map[string]api.GraphNode)
	for _, n := range graph.Nodes {
		found[strings.TrimPrefix(n.Hook, "project/")] = n
	}
	for name, want := range map[string]string{"first": "quarantined", "second": "on", "watched": "shadow", "off": "off", "gate": "closed"} {
		n := found[name]
		if n.State != want || n.Why == "" || n.Untrusted != (name == "gate") {
			t.Errorf("hook %s is %+v, want it %s", name, n, want)
		}
		if n.Origin.Kind != hook.OriginProject || n.Origin.Line == 0 {
			t.Errorf("hook %s comes from %+v", name, n.Origin)
		}
	}
	if len(graph.Edges) == 0 || graph.Edges[0].From != "tool.pre project/first" || graph.Edges[0].To != "tool.pre project/second" {
		t.Errorf("the edges are %+v", graph.Edges)
	}
}

// Statistics count the runs of each hook since a time, and say if they left out older ones.
//
// SPEC V-02, J-01
func TestHookStats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manyHooks(), nil)
	now := time.Now()
	var runs []hook.Run
	for i := range 100 { // 1 ms to 100 ms
		r := hook.Run{
			ID: "r-" + time.Duration(i).String(), Subscription: "test/slow", Phase: "tool.post", State: hook.Completed, Started: now.Add(-time.Hour).Add(time.Duration(i) * time.Second),
			Latency: hook.Latency(time.Duration(i+1) * time.Millisecond), Execution: hook.Blocking, Visibility: hook.VisibleInAudit,
		}
		r.Ended = r.Started.Add(time.Duration(r.Latency))
		switch {
		case i < 2:
			r.State, r.Class = hook.TimedOut, codes.Timeout
		case i < 5:
			r.State, r.Class = hook.Failed, codes.Error
		case i == 99:
			r.State = hook.Skipped
		}
		runs = append(runs, r)
	}
	old := runs[50]
	old.ID, old.Started = "r-old", now.Add(-48*time.Hour)
	if err := w.journal().Append(t.Context(), append(runs, old)); err != nil {
		t.Fatal(err)
	}
	w.turn("admin", w.newSession(), needsApproval)
	var stats api.HookStatList
	w.call("admin", "GET", "/v1/hooks/stats", nil, &stats)
	of := func(hook string) (one api.HookStat) {
		for _, s := range stats.Hooks {
			if s.Hook == hook {
				one = s
			}
		}
		return one
	}
	if s := of("test/slow"); s.Runs != 99 || s.Failures != 5 || s.Timeouts != 2 || s.Denials != 0 || s.P50 != 50_000 || s.P99 != 99_000 || s.LastRun != runs[98].ID || stats.Truncated {
		t.Errorf("the statistics are %+v, truncated %v", s, stats.Truncated)
	}
	if s := of("project/second"); s.Runs != 1 || s.Denials != 1 || s.Session == "" {
		t.Errorf("the statistics of a hook that denied are %+v", s)
	}
	w.call("admin", "GET", "/v1/hooks/stats?limit=5", nil, &stats)
	if !stats.Truncated || stats.Records != 5 || stats.Since.Before(now.Add(-2*time.Hour)) {
		t.Errorf("with a limit: %+v", stats)
	}
	w.call("admin", "GET", "/v1/hooks/stats?since="+now.Add(-72*time.Hour).UTC().Format(time.RFC3339), nil, &stats)
	if s := of("test/slow"); s.Runs != 100 {
		t.Errorf("since three days: %+v", s)
	}
}

// The list of trusted directories says what has changed since a person trusted one.
//
// SPEC W-06, V-02
func TestWhatChangedSinceTrusted(t *testing.T) {
	t.Parallel()
	var user string
	w := newWorld(t, manyHooks(), func(h *host.Options, _ *serve.Options) { user = h.UserDir })
	dir, err := filepath.EvalSymlinks(filepath.Join(w.dir, ".belay"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := space.Load(dir, hook.OriginProject)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := space.OpenTrust(filepath.Join(user, "belay", "trust")).Add(loaded, "ann"); err != nil {
		t.Fatal(err)
	}
	var trust api.TrustList
	if w.call("admin", "GET", "/v1/hooks/trust", nil, &trust); len(trust.Directories) != 1 || trust.Directories[0].State != "unchanged" || len(trust.Directories[0].Changes) != 0 {
		t.Fatalf("the trusted directories are %+v", trust)
	}
	for name, text := range map[string]string{"check.sh": "#!/bin/sh\nexit 2\n", "more.yaml": "hooks:\n  - {id: more, phase: tool.pre, action: log}\n"} {
		if err := os.WriteFile(filepath.Join(dir, "hooks", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.call("admin", "GET", "/v1/hooks/trust", nil, &trust)
	changes := make(map[string]api.TrustChange)
	for _, c := range trust.Directories[0].Changes {
		changes[c.File] = c
	}
	if c := changes["hooks/check.sh"]; c.Change != "changed" || !strings.Contains(c.Diff, "-exit 0\n+exit 2") {
		t.Errorf("a changed script: %+v in %+v", c, trust)
	}
	if c := changes["hooks/more.yaml"]; c.Change != "added" || !strings.Contains(c.Diff, "+hooks:") {
		t.Errorf("a new file: %+v in %+v", c, trust)
	}
}

// journal returns the journal of the server's store.
func (w *world) journal() hook.Journal {
	return w.host.Store().(belay.JournalStore).Journal()
}
