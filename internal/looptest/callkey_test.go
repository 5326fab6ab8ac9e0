package looptest_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// The key of a call is the same when the call runs again, after a crash or after it was parked.
// No two calls have the same key, even if a model repeats an id.
//
// SPEC T-16
func TestCallKey(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var mu sync.Mutex
	keys := map[string][]string{} // by session, turn and input
	started, gone := make(chan struct{}), make(chan struct{})
	agent := func(interrupted bool) *belay.Agent {
		pay := belay.NewRawTool(belay.ToolDeclaration{Name: "pay", Description: "Pays."}, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			mu.Lock()
			at := call.Session + " " + call.Turn + " " + string(call.Input)
			keys[at] = append(keys[at], call.Key())
			mu.Unlock()
			if string(call.Input) == `{"park":true}` && call.Wait == "" {
				return belay.Result{}, belay.Park("bank")
			}
			if interrupted {
				close(started)
				<-gone
			}
			return belay.Result{Text: "paid"}, nil
		}, &belay.ToolTraits{Idempotent: true, Serial: true})
		call := func(id, input string) scripted.Call { return scripted.Call{ID: id, Tool: "pay", Input: input} }
		return agentOf(t, scripted.New([]scripted.Step{
			{Calls: []scripted.Call{call("a", `{"n":1}`)}},
			{Calls: []scripted.Call{call("a", `{"park":true}`), call("b", `{"n":2}`)}},
			says("done"),
			{Calls: []scripted.Call{call("a", `{"n":1}`)}},
			says("done"),
		}, &scripted.Options{FollowTranscript: true}), &belay.Options{Store: store, Tools: []belay.Tool{pay}})
	}
	lost := make(chan taken, 1)
	first := agent(true)
	go func() { lost <- take(first.Session("s").Run(t.Context(), "a")) }()
	<-started
	store.Expire("s")

	second := agent(false)
	s := second.Session("s")
	takeTurn(t, s.Resume(t.Context()), belay.EndParked)
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	takeTurn(t, s.Run(t.Context(), "b"), belay.EndTurn)
	other := second.Session("other")
	takeTurn(t, other.Run(t.Context(), "a"), belay.EndParked)
	close(gone)
	<-lost

	mu.Lock()
	defer mu.Unlock()
	var all []string
	twice := 0
	for at, of := range keys {
		if len(of) > 1 {
			twice++
		}
		if of = slices.Compact(of); len(of) != 1 || len(of[0]) != 64 {
			t.Errorf("the keys of the call %s are %q, want one of 64 characters", at, of)
		}
		all = append(all, of...)
	}
	if slices.Sort(all); len(slices.Compact(slices.Clone(all))) != len(all) {
		t.Errorf("two calls have the same key: %q", keys)
	}
	if len(keys) != 6 || twice != 2 {
		t.Errorf("%d calls ran, %d of them twice, want 6 and 2: %q", len(keys), twice, keys)
	}
}
