package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/engine"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/store/sqlite"
)

// asked records the names of the models that were called, in order.
type asked struct {
	mu    sync.Mutex
	names []string
}

func (a *asked) of(name string) model {
	return model{name: name, asked: func(context.Context, string) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.names = append(a.names, name)
	}}
}

func (a *asked) all() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.names)
}

// has returns the options of an agent that has only the named models.
func (a *asked) has(s *sqlite.Store, names ...string) belay.Options {
	return belay.Options{Store: s, Models: func(_ context.Context, name string) (belay.Model, error) {
		if !slices.Contains(names, name) {
			return nil, errors.New("it has no key")
		}
		return a.of(name), nil
	}}
}

func submitTo(t *testing.T, s *sqlite.Store, model, session, text string) {
	t.Helper()
	turn, err := belay.NewQueuedTurn(session, "main", text)
	if turn.Model = model; err == nil {
		err = s.Submit(t.Context(), turn)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// If a worker does not have the model of a turn, it leaves the turn to a worker that has
// the model. The turn keeps its message and its position in the queue. Load reports the
// reason.
//
// SPEC J-05, L-02
func TestStrangeModel(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openFile(t, "")
	var models asked
	submitTo(t, s, "big", "a", "hello")
	submitTo(t, s, "", "b", "hello")
	c := start(t, s, engine.Of(newAgent(t, models.of("small"), models.has(s))), engine.Options{})
	seen := make(map[string]engine.Taken)
	for len(seen) < 2 { // a claim that was already running may find the turn a second time
		taken := c.next(t)
		seen[taken.Session] = taken
	}
	strange, own := seen["a"], seen["b"]
	missing, ok := errors.AsType[*belay.MissingModelError](strange.Err)
	if !ok || missing.Model != "big" || !strings.Contains(strange.Err.Error(), "it has no key") || own.Err != nil || own.Session != "b" {
		t.Errorf("the strange turn: %v, the own one: %+v", strange.Err, own)
	}
	c.stop()
	if queued, err := s.Queued(ctx, "a"); err != nil || len(queued) != 1 || queued[0].Text != "hello" {
		t.Errorf("what is queued is %+v, %v", queued, err)
	}
	load, err := s.Load(ctx)
	if err != nil || load.Waiting != 1 {
		t.Errorf("the load is %+v, %v", load, err)
	}
	second := openFile(t, s.Path())
	knows := start(t, second, engine.Of(newAgent(t, models.of("small"), models.has(second, "big"))), engine.Options{})
	if taken := knows.next(t); taken.Err != nil || taken.Session != "a" {
		t.Errorf("the worker that has the model: %+v", taken)
	}
	if got := models.all(); !slices.Equal(got, []string{"small", "big"}) {
		t.Errorf("asked were %q", got)
	}
}

// A worker does not resume a turn if it does not have the turn's model.
//
// SPEC J-05
func TestStrangeModelOfAnOpenTurn(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openFile(t, "")
	var models asked
	agent := func(s *sqlite.Store, names ...string) *belay.Agent {
		opts := models.has(s, names...)
		opts.OnAsk = belay.AskPark
		opts.Tools = []belay.Tool{tool("deploy", func(context.Context, *belay.Invocation) error { return nil }, nil)}
		opts.Hooks = []hook.Subscription{belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.Ask("it goes out"), nil
		}, nil)}
		return newAgent(t, models.of("small"), opts)
	}
	submitTo(t, s, "big", "a", "call deploy")
	first := start(t, s, engine.Of(agent(s, "big")), engine.Options{})
	if taken := first.next(t); taken.Err != nil || taken.Turn.Reason != belay.EndParked {
		t.Fatalf("%+v", taken)
	}
	first.stop()
	for a, err := range s.Approvals(ctx, belay.ApprovalFilter{Pending: true}) {
		if err == nil {
			_, err = s.Decide(ctx, belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: true, By: "ann"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	lacking := start(t, s, engine.Of(agent(s)), engine.Options{})
	if taken := lacking.next(t); taken.Err == nil || !strings.Contains(taken.Err.Error(), "it has no key") {
		t.Errorf("without the model: %+v", taken)
	}
	lacking.stop()
	second := openFile(t, s.Path())
	last := start(t, second, engine.Of(agent(second, "big")), engine.Options{})
	if taken := last.next(t); taken.Err != nil || taken.Turn.Reason != belay.EndTurn {
		t.Errorf("with it: %+v", taken)
	}
	if got := models.all(); !slices.Equal(got, []string{"big", "big"}) {
		t.Errorf("asked were %q", got)
	}
}

// A queued turn runs with its own agent, even if the previous worker died before it could
// store which agent is next.
//
// SPEC J-04
func TestTurnsOfTwoAgents(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), openFile(t, "")
	dies := openFile(t, s.Path())
	submit(t, s, "alpha", "a", "for alpha")
	submit(t, s, "beta", "a", "for beta")
	alpha := newAgent(t, model{}, belay.Options{Name: "alpha", Store: dies})
	if _, err := dies.Claim(ctx, belay.TurnFilter{}); err != nil {
		t.Fatal(err)
	}
	if _, err := alpha.Session("a").RunDue(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := alpha.Session("a").RunDue(ctx, nil); err == nil || !strings.Contains(err.Error(), `belongs to agent "beta"`) {
		t.Errorf("alpha takes the turn of beta: %v", err)
	}
	if err := errors.Join(alpha.Close(ctx), dies.Close()); err != nil { // the claim was not settled, as if the worker had died
		t.Fatal(err)
	}
	by := make(chan string, 4)
	made := func(name string) *belay.Agent {
		return newAgent(t, model{asked: func(_ context.Context, task string) { by <- name + ": " + task }}, belay.Options{Name: name, Store: s})
	}
	c := start(t, s, engine.Of(made("alpha"), made("beta")), engine.Options{})
	if taken := c.next(t); taken.Err != nil || taken.Agent != "beta" {
		t.Errorf("%+v", taken)
	}
	if got := <-by; got != "beta: for beta" {
		t.Errorf("asked was %q", got)
	}
}

// A turn that is left to other workers keeps its age, so that the reported age of the
// oldest turn is right.
func TestPutBackKeepsItsAge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ agent, model string }{
		"for its agent": {"other", ""},
		"for its model": {"main", "big"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openFile(t, "")
			var models asked
			turn, err := belay.NewQueuedTurn("a", test.agent, "hello")
			if turn.Model = test.model; err == nil {
				err = s.Submit(t.Context(), turn)
			}
			if err != nil {
				t.Fatal(err)
			}
			due, err := s.Claim(t.Context(), belay.TurnFilter{})
			if err == nil {
				err = s.Settle(t.Context(), due, time.Now().Add(-time.Hour))
			}
			if err != nil {
				t.Fatal(err)
			}
			c := start(t, s, engine.Of(newAgent(t, models.of("small"), models.has(s))), engine.Options{})
			if taken := c.next(t); taken.Err == nil {
				t.Errorf("the turn was taken: %+v", taken)
			}
			c.stop()
			if load, err := s.Load(t.Context()); err != nil || load.Waiting != 1 || load.OldestAge < time.Hour {
				t.Errorf("the load is %+v, %v, want a turn that has waited for an hour", load, err)
			}
		})
	}
}

// A worker that does not have a job's agent does not use up the job's attempts.
//
// SPEC J-05
func TestStrangersSpendNoAttempts(t *testing.T) {
	t.Parallel()
	s := openFile(t, "")
	tried := make(chan int, 8)
	other := newAgent(t, model{}, belay.Options{Name: "other", Store: s, Hooks: []hook.Subscription{
		belay.TurnPostTurn.On("learn", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			tried <- 1
			return belay.Note{}, errors.New("not today")
		}, &hook.Options{Execution: hook.Background, Idempotent: true, Retry: hook.Retry{Attempts: 2, Delay: time.Millisecond}}),
	}})
	if _, err := other.Session("x").Turn(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	queue := s.Queue().(hook.WorkQueue)
	for range 3 { // none of these workers has the agent
		ctx, stop := context.WithCancel(t.Context())
		err := queue.Work(ctx, func(_ context.Context, job hook.Job) (hook.Run, time.Time) {
			defer stop()
			run := job.Begun(time.Now())
			run.State, run.Class, run.Ended = hook.Interrupted, codes.HandlerGone, run.Started
			return run, run.Ended
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, s, engine.Of(other), engine.Options{})
	<-tried
	<-tried
	c.stop()
}
