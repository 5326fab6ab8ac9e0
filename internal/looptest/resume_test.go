package looptest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// asking returns a gate that requires approval for the calls of a tool. It notes every call
// that it checks.
func asking(d *logbook, tool string) hook.Subscription {
	return belay.ToolPre.On("gate", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
		d.notef("pre %s", c.Tool())
		if c.Tool() == tool {
			return belay.Ask("sure?"), nil
		}
		return belay.Pass, nil
	}, nil)
}

// noting returns a tool that notes when it runs.
func noting(d *logbook, name string, traits *belay.ToolTraits) belay.Tool {
	return anyTool(name, func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		d.notef("run %s", name)
		return belay.Result{Text: name + " ran on " + string(call.Input)}, nil
	}, traits)
}

// settleAs decides the approval of a parked turn.
func settleAs(t testing.TB, agent *belay.Agent, wait belay.Approval, allow bool) {
	t.Helper()
	if _, err := agent.Decide(t.Context(), belay.Decision{Approval: wait.ID, Hash: wait.Hash, Allow: allow, By: "ann", Reason: "so be it"}); err != nil {
		t.Fatal(err)
	}
}

// SPEC L-01, L-08: every process that uses the store can resume a parked turn.
func TestResumeParked(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		allow bool
		floor belay.ToolDecision // the decision of the floor in the second process
		want  []string           // what happens in the second process
		text  string             // the result of the call that needed approval
	}{
		"an approved call runs, and tool.pre is not asked again": {true, belay.ToolPass, []string{"floor asked", "run asked"}, "asked ran on {}"},
		"a denied one does not":                                  {false, belay.ToolPass, nil, "Denied by \"ann\": so be it"},
		"the floor has the last word, with today's rules":        {true, belay.ToolDeny, []string{"floor asked"}, "Denied by \"zone\": not today"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			var first, second logbook
			opts := func(d *logbook) *belay.Options {
				return &belay.Options{
					Store: store, OnAsk: belay.AskPark, Hooks: []hook.Subscription{asking(d, "asked")},
					Tools: []belay.Tool{noting(d, "free", nil), noting(d, "asked", nil)},
				}
			}
			s := agentOf(t, scriptOf(calls("free", "asked")), opts(&first)).Session("s")
			parked := takeTurn(t, s.Run(t.Context(), "a"), belay.EndParked)
			if got := len(first.all()); got != 3 || len(parked.Waits) != 1 || parked.Waits[0].Tool != "asked" || parked.Waits[0].By != "gate" {
				t.Fatalf("it waits for %+v after %v", parked.Waits, first.all())
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			model := scriptOf(says("done"))
			o := opts(&second)
			o.Authorizer = floorFunc(func(c belay.ToolCall) (belay.Authorization, error) {
				second.notef("floor %s", c.Tool())
				return belay.Authorization{Decision: test.floor, Reason: "not today", By: "zone"}, nil
			})
			agent := agentOf(t, model, o)
			settleAs(t, agent, parked.Waits[0].Approval, test.allow)
			all := takeTurn(t, agent.Session("s").Resume(t.Context()), belay.EndTurn)
			wantEqual(t, "what happens", second.all(), test.want)
			if first := all.events[0]; first.Kind != belay.EventTurnStart || first.Text != "a" || first.Turn != parked.ID {
				t.Errorf("the turn goes on with %+v", first)
			}
			results := storedResults(t, agent.Session("s"))
			if results[0].Text != "free ran on {}" || !strings.HasPrefix(results[1].Text, test.text) {
				t.Errorf("the results are %+v", results)
			}
			if all.ID != parked.ID || all.Steps != 2 {
				t.Errorf("turn %s went on as %s with %d steps", parked.ID, all.ID, all.Steps)
			}
			wantAnswered(t, model.Requests())
		})
	}
}

// SPEC L-01: contributions that hooks make at the start of a turn apply to the whole turn.
// These hooks do not run again when the turn is resumed.
func TestResumeKeepsWhatHooksContributed(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	opts := func(hooks ...hook.Subscription) *belay.Options {
		return &belay.Options{
			Store: store, OnAsk: belay.AskPark, Hooks: hooks, Tools: []belay.Tool{echoTool("asked")}, Extensions: []belay.Extension{notes{}},
		}
	}
	once := func(phase string) { t.Errorf("%s was asked again", phase) }
	first := agentOf(t, scriptOf(calls("asked")), opts(
		gateOf("gate", belay.Ask("sure?")),
		belay.TurnPrePolicy.On("policy", func(context.Context, belay.TurnBegun) (belay.TurnPolicy, error) {
			return belay.SetPolicy(belay.MaxSteps.Set(3)), nil
		}, nil),
		belay.TurnPrePromptCompile.On("rules", func(context.Context, belay.TurnSoFar) (belay.PromptSections, error) {
			return belay.PromptSections{Sections: []belay.PromptSection{{ID: "rules", Title: "Rules", Body: "never push to main"}}}, nil
		}, nil),
		belay.TurnPreToolMaterialization.On("tools", func(context.Context, belay.TurnSoFar) (belay.ToolBundles, error) {
			return belay.ToolBundles{Bundles: []belay.ToolBundle{{ID: "notes", Route: "notes", Tools: []belay.ToolDeclaration{{Name: "lookup"}}}}}, nil
		}, nil),
	))
	parked := takeTurn(t, first.Session("s").Run(t.Context(), "a"), belay.EndParked)
	settleAs(t, first, parked.Waits[0].Approval, true)

	model := scriptOf(callWith("lookup", `{"n":1}`), callWith("lookup", `{"n":2}`), says("never asked"))
	second := agentOf(t, model, opts(
		belay.TurnPrePromptCompile.On("rules", func(context.Context, belay.TurnSoFar) (belay.PromptSections, error) {
			once("turn.pre_prompt_compile")
			return belay.PromptSections{}, nil
		}, nil),
		belay.TurnPreToolMaterialization.On("tools", func(context.Context, belay.TurnSoFar) (belay.ToolBundles, error) {
			once("turn.pre_tool_materialization")
			return belay.ToolBundles{}, nil
		}, nil),
	))
	session := second.Session("s")
	if all := takeTurn(t, session.Resume(t.Context()), belay.EndMaxSteps); all.Steps != 3 {
		t.Errorf("the turn took %d steps, want the 3 that the policy allows", all.Steps)
	}
	requests := model.Requests()
	if len(requests) != 2 || !strings.Contains(requests[0].System, "never push to main") {
		t.Errorf("%d requests were made, the first with the prompt %q", len(requests), requests[0].System)
	}
	wantEqual(t, "the tools in the requests", declared(model), []string{"asked lookup", "asked lookup"})
	var results []string
	for _, r := range storedResults(t, session) {
		results = append(results, r.Text)
	}
	wantEqual(t, "the results", results, []string{"{}", `looked up {"n":1}`, `looked up {"n":2}`})
}

// SPEC L-01: if a turn is resumed before its approval is decided, it parks again, and the
// session refuses other turns.
func TestResumeUndecided(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var d logbook
	opts := &belay.Options{Store: store, OnAsk: belay.AskPark, Hooks: []hook.Subscription{asking(&d, "asked")}, Tools: []belay.Tool{noting(&d, "asked", nil)}}
	first := agentOf(t, scriptOf(calls("asked")), opts)
	takeTurn(t, first.Session("s").Run(t.Context(), "a"), belay.EndParked)
	store.Expire("s")
	model := scriptOf(says("after"))
	agent := agentOf(t, model, opts)
	s := agent.Session("s")
	again := takeTurn(t, s.Resume(t.Context()), belay.EndParked)
	if len(again.Waits) != 1 || len(again.of(belay.EventApprovalRequested)) != 1 {
		t.Errorf("it waits for %+v", again.Waits)
	}
	if _, err := s.Turn(t.Context(), "b"); !errors.Is(err, belay.ErrParked) {
		t.Errorf("a turn in between: %v", err)
	}
	turn, err := s.Abandon(t.Context())
	if err != nil || turn.Reason != belay.EndAborted {
		t.Errorf("it was abandoned %+v: %v", turn, err)
	}
	if class := onlyResult(t, s).Class; class != belay.ClassAborted {
		t.Errorf("the call's result is of class %q", class)
	}
	for what, err := range map[string]error{"Abandon": second(s.Abandon(t.Context())), "Resume": take(s.Resume(t.Context())).err} {
		if !errors.Is(err, belay.ErrNoTurn) {
			t.Errorf("%s without a turn: %v", what, err)
		}
	}
	say(t, s, "c")
	wantAnswered(t, model.Requests())
	wantEqual(t, "what happened", d.all(), []string{"pre asked"})
}

func second[A, B any](_ A, b B) B { return b }

// SPEC L-01: when a turn is resumed, a tool that parked its call is called again.
// Invocation.Wait then has the text that the tool gave to Park.
func TestResumeToolThatParks(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var waits []string
	tool := anyTool("wait", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
		waits = append(waits, call.Wait)
		if call.Wait == "" {
			return belay.Result{}, belay.Park("the mail")
		}
		return belay.Result{Text: "it came"}, nil
	}, nil)
	opts := &belay.Options{Store: store, Tools: []belay.Tool{tool}}
	takeTurn(t, agentOf(t, scriptOf(calls("wait")), opts).Session("s").Run(t.Context(), "a"), belay.EndParked)
	store.Expire("s")
	s := agentOf(t, scriptOf(says("done")), opts).Session("s")
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "the value of Wait in each call", waits, []string{"", "the mail"})
	if r := onlyResult(t, s); r.Text != "it came" {
		t.Errorf("the result is %+v", r)
	}
}

// process stands for a process that ends during a call.
type process struct {
	turn  chan taken
	leave func()
}

// stranded starts a turn that blocks in the tool "stuck". It then makes the store believe
// that the process has ended.
func stranded(t *testing.T, store *memstore.Store, opts belay.Options, how func(s *belay.Session) taken) process {
	t.Helper()
	started, gone := make(chan struct{}), make(chan struct{})
	stuck := anyTool("stuck", func(context.Context, *belay.Invocation) (belay.Result, error) {
		close(started)
		<-gone
		return belay.Result{Text: "too late"}, nil
	}, nil)
	opts.Store, opts.Tools = store, append([]belay.Tool{stuck}, opts.Tools...)
	s := agentOf(t, scriptOf(calls("stuck", "again")), &opts).Session("s")
	p := process{turn: make(chan taken, 1), leave: func() { close(gone) }}
	go func() { p.turn <- how(s) }()
	<-started
	store.Expire("s")
	return p
}

func runs(t *testing.T) func(s *belay.Session) taken {
	t.Helper()
	return func(s *belay.Session) taken { return take(s.Run(t.Context(), "a")) }
}

// SPEC L-01, L-02: a call that was running when its process ended runs again only if it is
// idempotent, and a process that lost the session cannot write to it any more.
func TestResumeInterrupted(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var first, second logbook
	p := stranded(t, store, belay.Options{
		Tools: []belay.Tool{noting(&first, "again", &belay.ToolTraits{Idempotent: true})}, Hooks: []hook.Subscription{asking(&first, "")},
	}, runs(t))

	model := scriptOf(says("done"), says("next"))
	s := agentOf(t, model, &belay.Options{
		Store: store, Hooks: []hook.Subscription{asking(&second, "")},
		Tools: []belay.Tool{noting(&second, "stuck", nil), noting(&second, "again", &belay.ToolTraits{Idempotent: true})},
	}).Session("s")
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "what the second process does", second.all(), []string{"run again"})
	results := storedResults(t, s)
	if r := results[0]; !r.IsError || r.Class != belay.ClassAborted || !strings.Contains(r.Text, "The process ended during this call") {
		t.Errorf("the result of the call that may have had an effect is %+v", r)
	}
	if r := results[1]; r.IsError || r.Text != "again ran on {}" {
		t.Errorf("the call that can be repeated has the result %+v", r)
	}

	p.leave()
	lost := <-p.turn
	if !errors.Is(lost.err, belay.ErrFenced) || lost.Reason != belay.EndError {
		t.Errorf("the turn of the process that lost the session ended %s: %v", lost.Reason, lost.err)
	}
	say(t, s, "b")
	wantOutline(t, transcript(t, s)[4:], "user: b", "assistant: next")
	wantAnswered(t, model.Requests())
}

// SPEC L-01: if an interrupted turn is not resumed, the next turn ends it.
func TestInterruptedTurnIsEndedByTheNext(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var d logbook
	p := stranded(t, store, belay.Options{Tools: []belay.Tool{echoTool("again")}}, runs(t))
	model := scriptOf(says("next"))
	s := agentOf(t, model, &belay.Options{Store: store, Hooks: []hook.Subscription{
		belay.TurnPostTurn.On("end", func(_ context.Context, e belay.TurnEnded) (belay.Note, error) {
			d.notef("%s %s", strings.SplitN(e.Turn(), "-", 2)[0], e.Reason())
			return belay.Note{}, nil
		}, nil),
	}}).Session("s")
	say(t, s, "b")
	wantEqual(t, "the ends", d.all(), []string{"1 aborted", "2 end_turn"})
	for _, r := range storedResults(t, s) {
		if r.Class != belay.ClassAborted {
			t.Errorf("a call of the interrupted turn has the result %+v", r)
		}
	}
	wantAnswered(t, model.Requests())
	p.leave()
	<-p.turn
}

// SPEC L-01: if the process ends while a resumed call runs, the call counts as running, not
// as waiting. So it does not run again.
func TestResumeTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	for name, park := range map[string]bool{"a call that was approved": false, "a call that its tool had parked": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			started, gone := make(chan struct{}), make(chan struct{})
			var ran atomic.Int32
			tool := anyTool("asked", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				if park && call.Wait == "" {
					return belay.Result{}, belay.Park("it")
				}
				if ran.Add(1) == 1 {
					close(started)
					<-gone
				}
				return belay.Result{Text: "ran"}, nil
			}, nil)
			opts := &belay.Options{Store: store, OnAsk: belay.AskPark, Tools: []belay.Tool{tool}}
			if !park {
				opts.Hooks = []hook.Subscription{gateOf("gate", belay.Ask("sure?"))}
			}
			first := agentOf(t, scriptOf(calls("asked")), opts)
			parked := takeTurn(t, first.Session("s").Run(t.Context(), "a"), belay.EndParked)
			if !park {
				settleAs(t, first, parked.Waits[0].Approval, true)
			}
			ended := make(chan taken, 1)
			go func() { ended <- take(first.Session("s").Resume(t.Context())) }()
			<-started
			store.Expire("s")
			s := agentOf(t, scriptOf(says("done")), opts).Session("s")
			takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
			if n := ran.Load(); n != 1 {
				t.Errorf("it ran %d times", n)
			}
			if r := onlyResult(t, s); r.Class != belay.ClassAborted {
				t.Errorf("its result is %+v", r)
			}
			close(gone)
			if lost := <-ended; !errors.Is(lost.err, belay.ErrFenced) {
				t.Errorf("the first process ended with %v", lost.err)
			}
		})
	}
}

// SPEC L-01: an approval is for one call, even if a model uses the same id in
// each of its messages.
func TestApprovalWhereIdsRepeat(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]belay.Store{"in a store": memstore.New(nil), "in the agent's own memory": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d logbook
			call := func(n string) scripted.Step {
				return scripted.Step{Calls: []scripted.Call{{ID: "same", Tool: "asked", Input: `{"n":` + n + `}`}}}
			}
			opts := &belay.Options{Store: store, OnAsk: belay.AskPark, Hooks: []hook.Subscription{gateOf("gate", belay.Ask("sure?"))}, Tools: []belay.Tool{noting(&d, "asked", nil)}}
			agent := agentOf(t, scriptOf(call("1"), call("2"), call("3"), call("4"), says("done")), opts)
			s := agent.Session("s")
			parked := takeTurn(t, s.Run(t.Context(), "a"), belay.EndParked)
			for i := range 4 {
				settleAs(t, agent, parked.Waits[0].Approval, true)
				if i == 3 {
					takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
					break
				}
				parked = takeTurn(t, s.Resume(t.Context()), belay.EndParked)
				if n := len(d.all()); n != i+1 {
					t.Fatalf("after %d approvals it ran %d times", i+1, n)
				}
				again := takeTurn(t, s.Resume(t.Context()), belay.EndParked)
				if n := len(d.all()); n != i+1 || again.Waits[0].ID != parked.Waits[0].ID {
					t.Fatalf("without an approval it ran: %d times after %d approvals", n, i+1)
				}
			}
		})
	}
}

// SPEC L-01: if the end of a turn was not stored, its end phases fire again, with the
// reason of that turn: when it is resumed or abandoned, or when the next turn begins.
func TestEndPhasesFireLater(t *testing.T) {
	t.Parallel()
	for name, goOn := range map[string]func(t *testing.T, s *belay.Session) belay.EndReason{
		"when it is resumed": func(t *testing.T, s *belay.Session) belay.EndReason {
			t.Helper()
			return takeTurn(t, s.Resume(t.Context()), belay.EndTurn).Reason
		},
		"when it is abandoned": func(t *testing.T, s *belay.Session) belay.EndReason {
			t.Helper()
			turn, err := s.Abandon(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return turn.Reason
		},
		"when the next turn begins": func(t *testing.T, s *belay.Session) belay.EndReason {
			t.Helper()
			say(t, s, "b")
			return belay.EndTurn
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d logbook
			end := func(process string) []hook.Subscription {
				return []hook.Subscription{belay.TurnPostTurn.On("end", func(_ context.Context, e belay.TurnEnded) (belay.Note, error) {
					d.notef("%s: turn %s ended %s after %d steps", process, strings.SplitN(e.Turn(), "-", 2)[0], e.Reason(), e.Steps())
					return belay.Note{}, nil
				}, nil)}
			}
			inner := memstore.New(nil)
			// The commits are the user's message, the response and the end.
			store := storetest.Faulty(inner, &storetest.Plan{Commit: 3, Rest: true})
			if _, err := agentOf(t, scriptOf(says("one")), &belay.Options{Store: store, Hooks: end("first")}).Session("s").Turn(t.Context(), "a"); !errors.Is(err, storetest.ErrInjected) {
				t.Fatalf("the turn ended with %v", err)
			}
			s := agentOf(t, scriptOf(says("two")), &belay.Options{Store: inner, Hooks: end("second")}).Session("s")
			if reason := goOn(t, s); reason != belay.EndTurn {
				t.Errorf("it ended %s", reason)
			}
			got := d.all()
			if len(got) < 2 || got[1] != "second: turn 1 ended end_turn after 1 steps" {
				t.Errorf("the end phases saw %q", got)
			}
			if take(s.Resume(t.Context())).err == nil {
				t.Error("it can be resumed again")
			}
		})
	}
}

// SPEC L-02.
func TestOneTurnAtATime(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]bool{"a second turn waits": false, "a second turn is refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, goOn := make(chan struct{}, 2), make(chan struct{})
			step := scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) {
				asked <- struct{}{}
				<-goOn
				return says("one"), nil
			}}
			store := memstore.New(nil)
			s := agentOf(t, scriptOf(step, step), &belay.Options{RefuseBusy: refuse, Store: store}).Session("s")
			first, next := make(chan error, 1), make(chan error, 1)
			go func() { first <- second(s.Turn(t.Context(), "a")) }()
			<-asked
			if _, err := agentOf(t, scriptOf(), &belay.Options{Store: store}).Session("s").Turn(t.Context(), "elsewhere"); !errors.Is(err, belay.ErrHeld) {
				t.Errorf("another process: %v", err)
			}
			if refuse {
				if _, err := s.Turn(t.Context(), "b"); !errors.Is(err, belay.ErrBusy) {
					t.Errorf("the second turn: %v", err)
				}
				close(goOn)
				if err := <-first; err != nil {
					t.Error(err)
				}
				return
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.Turn(gone, "nobody waits"); !errors.Is(err, context.Canceled) {
				t.Errorf("one that gives up: %v", err)
			}
			go func() { next <- second(s.Turn(t.Context(), "b")) }()
			close(goOn)
			if err := errors.Join(<-first, <-next); err != nil {
				t.Error(err)
			}
			wantOutline(t, transcript(t, s), "user: a", "assistant: one", "user: b", "assistant: one")
		})
	}
}
