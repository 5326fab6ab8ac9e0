package assembly

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A process that opens a session with an open turn shows the mode with which that turn continues,
// and not that of its settings. A mode that a person chose after the turn began is not stored. A
// new turn has the mode of the settings again, and so has the session after the turn.
//
// SPEC U-02
func TestRecallTheModeOfAnOpenTurn(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	answered := false
	wait := belay.NewRawTool(belay.ToolDeclaration{Name: "wait", Description: "x", InputSchema: []byte(`{"type":"object"}`)}, func(context.Context, *belay.Invocation) (belay.Result, error) {
		if !answered {
			return belay.Result{}, belay.Park("an answer")
		}
		return belay.Result{Text: "answered"}, nil
	}, nil)
	process := func(mode string, steps ...scripted.Step) (*Floor, *belay.Session) {
		settings := load(t, "", "BELAY_MODE="+mode)
		f := floorFor(t, settings)
		f.store = store
		agent, err := belay.New(scripted.New(steps, nil), &belay.Options{Store: store, Tools: []belay.Tool{wait}, Hooks: []hook.Subscription{RememberTurn(settings, f, "")}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = agent.Close(context.Background()) })
		return f, agent.Session("s")
	}
	shows := func(f *Floor, when, want string) {
		t.Helper()
		if err := f.Recall(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		if got := f.ModeOf("s").Name; got != want {
			t.Errorf("%s the mode is %s, want %s", when, got, want)
		}
	}
	f, session := process("standard", scripted.Step{Calls: []scripted.Call{{Tool: "wait", Input: `{}`}}})
	shows(f, "without a turn", "standard")
	set(t, f, "plan")
	if turn, err := session.Turn(t.Context(), "go"); err != nil || turn.Reason != belay.EndParked {
		t.Fatalf("the turn ended %v, error %v", turn, err)
	}
	set(t, f, "strict")
	shows(f, "in the first process", "strict")
	if err := session.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	f, session = process("standard", scripted.Step{Text: "done"}, scripted.Step{Text: "done again"})
	if got := f.ModeOf("s").Name; got != "standard" {
		t.Errorf("before the store is read the mode is %s", got)
	}
	shows(f, "in the next process", "plan")
	if got := f.ModeOf("s/1").Name; got != "plan" {
		t.Errorf("the mode of a subagent is %s", got)
	}
	answered = true
	for _, err := range session.Resume(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := f.ModeOf("s").Name; got != "plan" {
		t.Errorf("in the continued turn the mode is %s", got)
	}
	name, from, _ := f.modeToRemember("s", f.settings)
	if got := f.ModeOf("s").Name; got != "standard" || name != "standard" || from == "flag" {
		t.Errorf("in a new turn the mode is %s, and it stores %s from %q", got, name, from)
	}
	shows(f, "after the turn", "standard")
}

func set(t *testing.T, f *Floor, mode string) {
	t.Helper()
	if err := f.SetMode("s", mode); err != nil {
		t.Fatal(err)
	}
}
