package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
)

// keeper is a tool that parks its calls and records the calls for which Abandon is
// called.
type keeper struct {
	belay.Tool

	mu   sync.Mutex
	told []string
	how  func() error
}

func newKeeper(how func() error) *keeper {
	k := &keeper{how: how}
	k.Tool = anyTool("keep", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		return belay.Result{}, belay.Park("until " + call.ID)
	}, nil)
	return k
}

func (k *keeper) Abandon(_ context.Context, call *belay.Invocation) error {
	k.mu.Lock()
	k.told = append(k.told, fmt.Sprintf("%s %s of %s", call.ID, call.Wait, call.Turn[:1]))
	k.mu.Unlock()
	if call.Controls() == nil || call.Controls().Store() == nil {
		return errors.New("there is no store")
	}
	if k.how != nil {
		return k.how()
	}
	return nil
}

// SPEC L-01: if a turn is abandoned, the tool's Abandon is called for each call that the
// tool parked.
func TestAbandonedCallsAreToldToTheirTool(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		how  func() error
		want string // part of the text of an error event
	}{
		{"all is well", nil, ""},
		{"it fails", func() error { return errors.New("the disk is full") }, "the disk is full"},
		{"it panics", func() error { panic("oops") }, "panicked: oops"},
		{"it ends its goroutine", func() error { runtime.Goexit(); return nil }, "runtime.Goexit"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			k := newKeeper(test.how)
			agent, _ := newAgent(t, &belay.Options{Store: store, Tools: []belay.Tool{k}}, calls("keep"), says("after"))
			s := agent.Session("s")
			takeTurn(t, s.Run(t.Context(), "go"), belay.EndParked)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			events := agent.Watch(ctx, nil)
			turn, err := s.Abandon(t.Context())
			if err != nil || turn.Reason != belay.EndAborted || len(k.told) != 1 || !strings.Contains(k.told[0], "until ") {
				t.Fatalf("the turn is %+v, %v, and the tool got Abandon for %v", turn, err, k.told)
			}
			var failures string
			for e := range events {
				if e.Kind == belay.EventError {
					failures += e.Text
				}
				if e.End != nil {
					break
				}
			}
			if !strings.Contains(failures, test.want) || test.want == "" && failures != "" {
				t.Errorf("watchers got %q, want %q", failures, test.want)
			}
			say(t, s, "again") // the session is still usable
		})
	}
}

// SPEC L-01: if the process ended during a call, the tool's Abandon is called for that call
// too.
func TestInterruptedCallsAreToldToTheirTool(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(t *testing.T, s *belay.Session){
		"resume":       func(t *testing.T, s *belay.Session) { t.Helper(); takeTurn(t, s.Resume(t.Context()), belay.EndTurn) },
		"abandon":      func(t *testing.T, s *belay.Session) { t.Helper(); succeeds(t, second(s.Abandon(t.Context()))) },
		"another turn": func(t *testing.T, s *belay.Session) { t.Helper(); say(t, s, "b") },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			p := stranded(t, store, belay.Options{Tools: []belay.Tool{echoTool("again")}}, runs(t))
			k := newKeeper(nil)
			k.Tool = echoTool("stuck")
			end(t, agentOf(t, scriptOf(says("next")), &belay.Options{Store: store, Tools: []belay.Tool{k, echoTool("again")}}).Session("s"))
			wantEqual(t, "number of calls of Abandon", len(k.told), 1)
			p.leave()
			<-p.turn
		})
	}
}

// SPEC S-04: events of a remote runner's own children get run ids and depths below the run
// of that runner.
func TestEventsFromElsewhereArePlaced(t *testing.T) {
	t.Parallel()
	remote := []belay.Event{
		{Kind: belay.EventTurnStart},
		{Kind: belay.EventSubagentInvoked, Run: "a", Depth: 1, Subagent: &belay.SubagentEvent{Name: "a"}},
		{Kind: belay.EventSubagentInvoked, Run: "b", Parent: "a", Depth: 2, Subagent: &belay.SubagentEvent{Name: "b"}},
		{Kind: belay.EventTextDelta, Run: "b", Parent: "a", Depth: 2, Text: "not the answer"},
		{Kind: belay.EventSubagentCompleted, Run: "b", Parent: "a", Depth: 2, Subagent: &belay.SubagentEvent{Name: "b", Status: "success"}},
		{Kind: belay.EventSubagentCompleted, Run: "a", Depth: 1, Subagent: &belay.SubagentEvent{Name: "a", Status: "success"}},
		{Kind: belay.EventTextDelta, Text: "the answer"},
	}
	far := childTool("far", belay.Child{Name: "far", Run: "r"}, func(context.Context, *belay.Invocation) iter.Seq2[belay.Event, error] {
		return func(yield func(belay.Event, error) bool) {
			for _, e := range remote {
				yield(e, nil)
			}
		}
	})
	middle, _ := newAgent(t, &belay.Options{Name: "middle", Tools: []belay.Tool{far}}, calls("far"), says("half"))
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{childOf("middle", middle)}}, calls("middle"))
	turn := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the brackets", brackets(turn.events), []string{
		"subagent_invoked middle run=run-middle parent= depth=1",
		"subagent_invoked far run=r parent=run-middle depth=2",
		"subagent_invoked a run=r/a parent=r depth=3",
		"subagent_invoked b run=r/b parent=r/a depth=4",
		"subagent_completed b run=r/b parent=r/a depth=4 success",
		"subagent_completed a run=r/a parent=r depth=3 success",
		"subagent_completed far run=r parent=run-middle depth=2 success",
		"subagent_completed middle run=run-middle parent= depth=1 success",
	})
	wantEqual(t, "the answer", onlyResult(t, middle.Session("s/middle")).Text, "the answer")
}
