package backtest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/backtest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A report has no secrets of the calls. They are compared with their secrets.
//
// SPEC O-02
func TestReportsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	record(t, store, "s", belay.Options{Hooks: []hook.Subscription{rewrites(`{"path":"TOKEN=hunter-one make"}`)}},
		[]scripted.Call{{Tool: "note", Input: `{"path":"PASSWORD=hunter-two make"}`}})
	report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{
		rewrites(`{"path":"TOKEN=hunter-three make"}`), prompts(belay.RewritePrompt("PASSWORD=hunter-four")), hides("done"),
	}}, nil)
	const input = `note{"path":"PASSWORD=[REDACTED] make"}: `
	if diff := cmp.Diff([]string{
		`s prompt : allowed -> allowed as "PASSWORD=[REDACTED]"`,
		`s call ` + input + `allowed as {"path":"TOKEN=[REDACTED] make"} -> allowed as {"path":"TOKEN=[REDACTED] make"}`,
		`s result ` + input + `kept -> kept as "*** with {\"path\":\"TOKEN=[REDACTED] make\"}"`,
	}, lines(report)); diff != "" {
		t.Errorf("the differences (-want +got):\n%s", diff)
	}
	if note := report.Differences[1].Note; !strings.Contains(note, "looks like a secret") {
		t.Errorf("the note is %q, want one that says why the outcomes look the same", note)
	}
	data, err := json.Marshal(report)
	if err != nil || strings.Contains(string(data), "hunter") {
		t.Errorf("the report has a secret: %s (%v)", data, err)
	}
}

// A hook that matched nothing is in the totals, so that it differs from one that is missing.
//
// SPEC O-02
func TestHooksThatMatchNothingAreListed(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	record(t, store, "s", belay.Options{}, []scripted.Call{{Tool: "note", Input: `{"path":"drafts"}`}})
	report := run(t, store, &backtest.Policy{Hooks: []hook.Subscription{denies("idle", "other", "")}}, nil)
	if diff := cmp.Diff([]backtest.HookTotal{{ID: "idle", Phase: "tool.pre"}}, report.Hooks); diff != "" {
		t.Errorf("the totals (-want +got):\n%s", diff)
	}
}
