package looptest_test

import (
	"context"
	"regexp"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// A session can continue with another provider, and providers have different rules for call
// ids. Stored ids are unique in a conversation and have only plain characters, so all
// providers accept them.
func TestCallIDsAreApartAndPlain(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for rule, steps := range map[string][][]string{
		"the same in two steps":            {{"call_1"}, {"call_1"}},
		"the same in one step":             {{"call_1", "call_1"}, {"call_1"}},
		"counted anew in each step":        {{"0", "1"}, {"0", "1"}, {"0", "1"}},
		"one that looks like a mended one": {{"x", "x_2"}, {"x"}, {"x_2"}},
		"other characters":                 {{"fn.1", "fn:1"}, {"fn/1"}},
		"nothing but other characters":     {{"é"}, {"è"}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			for _, ids := range steps { // each turn uses a new agent, which reads earlier ids from the store
				var step scripted.Step
				for _, id := range ids {
					step.Calls = append(step.Calls, scripted.Call{ID: id, Tool: "act"})
				}
				agent, _ := newAgent(t, &belay.Options{Store: store, Tools: []belay.Tool{echoTool("act")}}, step, step)
				session := agent.Session("s")
				say(t, session, "go")
				if err := session.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			agent, _ := newAgent(t, &belay.Options{Store: store})
			session := agent.Session("s")
			known := map[string]bool{}
			for _, call := range storedCalls(t, session) {
				if known[call.ID] || !plain.MatchString(call.ID) {
					t.Errorf("a call has the id %q, which is taken (%v) or not plain", call.ID, known[call.ID])
				}
				known[call.ID] = true
			}
			storedResults(t, session) // fails unless each result answers its call
		})
	}
}
