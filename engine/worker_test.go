package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/sqlite"
)

// Any running worker answers submitted messages, in their order, one turn at a time.
//
// SPEC L-02
func TestSubmit(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	agent := newAgent(t, model{name: "m"}, belay.Options{Store: s})
	for _, text := range []string{"one", "two"} {
		if _, err := agent.Session("a").Submit(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	submit(t, s, "main", "b", "three")
	c := start(t, s, engine.Of(agent), engine.Options{})
	for range 3 {
		if taken := c.next(t); taken.Err != nil || taken.Turn.Reason != belay.EndTurn {
			t.Errorf("a turn ended %+v, %v", taken.Turn, taken.Err)
		}
	}
	submit(t, s, "main", "b", "four") // the worker is already running
	c.next(t)
	c.stop()
	want(t, s, "a", "user: one", "assistant: done: one", "user: two", "assistant: done: two")
	want(t, s, "b", "user: three", "assistant: done: three", "user: four", "assistant: done: four")
	idle(t, s)
}

// Submit rejects an invalid message. It also fails if the store has no queue of turns.
func TestSubmitRefuses(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	agent := newAgent(t, model{}, belay.Options{Store: s})
	if _, err := agent.Session("a").Submit(t.Context(), " "); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty message: %v", err)
	}
	if _, err := belay.NewQueuedTurn("", "main", "x"); err == nil {
		t.Error("a message for no session was accepted")
	}
	if _, err := belay.NewQueuedTurn("a", "", "x"); err == nil {
		t.Error("a message for no agent was accepted")
	}
	plain := newAgent(t, model{}, belay.Options{})
	if _, err := plain.Session("a").Submit(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "store/sqlite") {
		t.Errorf("a store that keeps no messages: %v", err)
	}
	idle(t, s)
}

// A parked turn occupies no worker. When any process stores the decision, the turn becomes
// due, and another worker finishes it. Messages that are submitted in the meantime wait
// until the turn has ended.
//
// SPEC P-08, L-01
func TestParkedElsewhere(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openFile(t, "")
	ran := 0
	agent := func(s *sqlite.Store) *belay.Agent {
		return newAgent(t, model{}, belay.Options{
			Store: s, OnAsk: belay.AskPark,
			Tools: []belay.Tool{tool("deploy", func(context.Context, *belay.Invocation) error { ran++; return nil }, nil)},
			Hooks: []hook.Subscription{belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				return belay.Ask("it goes out"), nil
			}, nil)},
		})
	}
	submit(t, s, "main", "a", "call deploy")
	first := start(t, s, engine.Of(agent(s)), engine.Options{})
	taken := first.next(t)
	if taken.Err != nil || taken.Turn.Reason != belay.EndParked {
		t.Fatalf("the turn ended %+v, %v, want it parked", taken.Turn, taken.Err)
	}
	submit(t, s, "main", "a", "and now?")
	if again := first.next(t); again.Turn == nil || again.Turn.Reason != belay.EndParked {
		t.Fatalf("with a message that waits: %+v, want it parked still", again)
	}
	first.stop()
	if load, err := s.Load(ctx); err != nil || load.Parked != 1 || load.Waiting != 0 {
		t.Errorf("the load is %+v, %v, want one parked turn", load, err)
	}

	person := openFile(t, s.Path())
	for a, err := range person.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err == nil {
			_, err = person.Decide(ctx, belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: "ann"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	other := openFile(t, s.Path())
	second := start(t, other, engine.Of(agent(other)), engine.Options{})
	for range 2 {
		if taken := second.next(t); taken.Err != nil || taken.Turn.Reason != belay.EndTurn {
			t.Errorf("decided: the turn ended %+v, %v", taken.Turn, taken.Err)
		}
	}
	second.stop()
	if ran != 1 {
		t.Errorf("the tool ran %d times", ran)
	}
	want(t, s, "a", "user: call deploy", "call: deploy", "result: deploy is done", "assistant: done: call deploy", "user: and now?", "assistant: done: and now?")
	idle(t, s)
}

// stopping is a store that signals that the worker no longer claims turns.
type stopping struct {
	*sqlite.Store
	ended chan struct{}
}

func (s *stopping) Claim(ctx context.Context, filter belay.TurnFilter) (belay.DueTurn, error) {
	due, err := s.Store.Claim(ctx, filter)
	if err != nil {
		close(s.ended)
	}
	return due, err
}

// When a worker is stopped, it hands over each turn after the turn's current step. If the
// step takes too long, it hands over the turn in the middle of the step. Another worker
// continues. A tool that is not idempotent never runs twice.
//
// SPEC L-01, T-10
func TestHandOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		grace time.Duration
		wait  bool
		want  []string
	}{
		"at the end of the step": {0, false, []string{"user: call send, look", "call: send", "result: send is done", "call: look", "result: look is done", "assistant: done: call send, look"}},
		"in the middle of a call": {1, true, []string{
			"user: call send, look", "call: send", "result: The process ended during this call, so its result is lost. The call may have run completely, partly or not at all. Find out before you repeat it.",
			"call: look", "result: look is done", "assistant: done: call send, look",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFile(t, "")
			began, told := make(chan struct{}, 10), make(chan struct{})
			var mu sync.Mutex
			ran := make(map[string]int)
			var ends []string
			agent := func(s *sqlite.Store) *belay.Agent {
				do := func(ctx context.Context, call *belay.Invocation) error {
					mu.Lock()
					ran[call.Tool]++
					mu.Unlock()
					began <- struct{}{}
					if !test.wait {
						<-told // the worker is stopping
						return nil
					}
					select {
					case <-ctx.Done(): // the worker released the turn
						return context.Cause(ctx)
					case <-told:
						return nil
					}
				}
				return newAgent(t, model{}, belay.Options{
					Store: s, Tools: []belay.Tool{tool("send", do, nil), tool("look", do, &belay.ToolTraits{Idempotent: true})},
					Hooks: []hook.Subscription{belay.TurnPostTurn.On("end", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
						mu.Lock()
						defer mu.Unlock()
						ends = append(ends, string(in.Reason()))
						return belay.Note{}, nil
					}, nil)},
				})
			}
			submit(t, s, "main", "a", "call send, look")
			opts := engine.Options{Grace: test.grace}
			stopping := &stopping{Store: s, ended: make(chan struct{})}
			first := start(t, stopping, engine.Of(agent(s)), opts)
			<-began
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				first.stop()
			}()
			<-stopping.ended
			if test.wait {
				<-stopped
			}
			close(told)
			<-stopped
			if taken := first.next(t); !errors.Is(taken.Err, belay.ErrHandedOver) {
				t.Fatalf("the turn ended %+v, %v, want it handed over", taken.Turn, taken.Err)
			}
			other := openFile(t, s.Path())
			second := start(t, other, engine.Of(agent(other)), engine.Options{})
			if taken := second.next(t); taken.Err != nil || taken.Turn.Reason != belay.EndTurn {
				t.Errorf("the other worker's turn ended %+v, %v", taken.Turn, taken.Err)
			}
			second.stop()
			want(t, s, "a", test.want...)
			if ran["send"] != 1 {
				t.Errorf("send ran %d times", ran["send"])
			}
			if !slices.Equal(ends, []string{"end_turn"}) {
				t.Errorf("turn.post_turn got %q, want one end", ends)
			}
			idle(t, s)
		})
	}
}

// settling is a store that signals each call of Settle, before it releases the claim.
type settling struct {
	*sqlite.Store
	settled chan struct{}
}

func (s *settling) Settle(ctx context.Context, due belay.DueTurn, again time.Time) error {
	s.settled <- struct{}{}
	return s.Store.Settle(ctx, due, again)
}

// A worker keeps its limits per agent and per model. Turns over a limit do not block other
// turns.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts engine.Options
		most map[string]int // maximum number of turns that run at once, by agent
	}{
		"of the worker":                   {engine.Options{Turns: 3}, map[string]int{"x": 3, "y": 3, "": 3}},
		"of an agent":                     {engine.Options{PerAgent: map[string]int{"x": 2}}, map[string]int{"x": 2, "y": 4, "": 6}},
		"of a model":                      {engine.Options{PerModel: map[string]int{"my": 1, "*": 3}}, map[string]int{"x": 3, "y": 1, "": 4}},
		"of a model that two agents have": {engine.Options{PerModel: map[string]int{"same": 1}}, map[string]int{"": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFile(t, "")
			var mu sync.Mutex
			now, most := map[string]int{}, map[string]int{}
			arrived, goOn := make(chan struct{}, 100), make(chan struct{})
			agent := func(name string) *belay.Agent {
				count := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					for _, of := range []string{name, ""} {
						now[of] += n
						most[of] = max(most[of], now[of])
					}
				}
				own := "m" + name
				if test.opts.PerModel["same"] > 0 {
					own = "same"
				}
				return newAgent(t, model{name: own, asked: func(context.Context, string) {
					count(1)
					arrived <- struct{}{}
					<-goOn
					count(-1)
				}}, belay.Options{Name: name, Store: s})
			}
			const n = 4
			for i := range n {
				submit(t, s, "x", fmt.Sprint("x", i), "x")
				submit(t, s, "y", fmt.Sprint("y", i), "y")
			}
			settled := &settling{s, make(chan struct{}, 100)}
			c := start(t, settled, engine.Of(agent("x"), agent("y")), test.opts)
			for range test.most[""] {
				<-arrived
			}
			if test.opts.PerModel["same"] > 0 {
				<-settled.settled // the worker has released the claim on the other agent's turn
			}
			close(goOn)
			for range 2 * n {
				if taken := c.next(t); taken.Err != nil {
					t.Error(taken.Err)
				}
			}
			c.stop()
			for of, n := range test.most {
				if most[of] > n {
					t.Errorf("%d turns of %q were taken at once, want %d at most", most[of], of, n)
				}
			}
			idle(t, s)
		})
	}
}

// If a worker does not have the agent of a turn, it leaves the turn to a worker that has
// the agent.
func TestStrangeAgent(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	submit(t, s, "other", "a", "hello")
	submit(t, s, "main", "b", "hello")
	c := start(t, s, engine.Of(newAgent(t, model{}, belay.Options{Store: s})), engine.Options{})
	strange, own := c.next(t), c.next(t)
	if !errors.Is(strange.Err, belay.ErrNotFound) || own.Err != nil || own.Session != "b" {
		t.Errorf("the strange turn: %v, the own one: %+v", strange.Err, own)
	}
	second := openFile(t, s.Path())
	knows := start(t, second, engine.Of(newAgent(t, model{}, belay.Options{Name: "other", Store: second})), engine.Options{})
	if taken := knows.next(t); taken.Err != nil || taken.Session != "a" {
		t.Errorf("the worker that has the agent: %+v", taken)
	}
}

// A worker waits while another process holds the session.
//
// SPEC L-02
func TestHeldElsewhere(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openFile(t, "")
	other := openFile(t, s.Path())
	stored, err := other.Open(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	submit(t, s, "main", "a", "hello")
	c := start(t, s, engine.Of(newAgent(t, model{}, belay.Options{Store: s})), engine.Options{})
	if taken := c.next(t); !errors.Is(taken.Err, belay.ErrHeld) {
		t.Errorf("a session that another holds: %+v, want %v", taken, belay.ErrHeld)
	}
	if err := other.Release(ctx, "a", stored.Epoch); err != nil {
		t.Fatal(err)
	}
	taken := c.next(t)
	for errors.Is(taken.Err, belay.ErrHeld) {
		taken = c.next(t)
	}
	if taken.Err != nil {
		t.Error(taken.Err)
	}
	want(t, s, "a", "user: hello", "assistant: done: hello")
}
