package looptest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// If the tool of an approved call is missing when the turn is resumed, Resume fails, and
// the turn stays parked.
//
// SPEC L-01, P-08
func TestResumeWithoutTheToolUsesNothingUp(t *testing.T) {
	t.Parallel()
	traits := map[string]*belay.ToolTraits{"remote": {Serial: true}}
	decide := func(answers ...string) []string { return answers }
	for name, test := range map[string]struct {
		answers []string // the decisions for remote and local, which both need approval
		has     []string // the tools of the process that resumes
		missing []string // the tools that the error names
		reason  belay.EndReason
		ran     []string // the calls that run when a process with all tools resumes the turn
		classes []belay.ResultClass
	}{
		"an approved call waits for its tool": {
			decide("yes", "yes"), []string{"local"}, []string{"remote"}, "", []string{"remote", "local"}, []belay.ResultClass{"", ""},
		},
		"each tool is named, in the order of the calls": {
			decide("yes", "yes"), nil, []string{"remote", "local"}, "", []string{"remote", "local"}, []belay.ResultClass{"", ""},
		},
		"a call that nobody decided waits on, and what stands behind it": {
			decide("", "yes"), []string{"local"}, nil, belay.EndParked, []string{"remote", "local"}, []belay.ResultClass{"", ""},
		},
		"one behind an undecided call waits for its tool too": {
			decide("", "yes"), []string{"remote"}, []string{"local"}, "", []string{"remote", "local"}, []belay.ResultClass{"", ""},
		},
		"a call that was refused needs no tool": {
			decide("no", "yes"), []string{"local"}, nil, belay.EndTurn, []string{"local"}, []belay.ResultClass{belay.ClassDenied, ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New(nil)
			var book logbook
			with := func(script *scripted.Model, tools ...string) *belay.Agent {
				opts := &belay.Options{Store: store, OnAsk: belay.AskPark, Hooks: []hook.Subscription{
					gateOf("gate", belay.Ask("sure?")),
					belay.TurnPostTurn.On("end", func(context.Context, belay.TurnEnded) (belay.Note, error) {
						book.notef("end")
						return belay.Note{}, nil
					}, nil),
				}}
				for _, tool := range tools {
					opts.Tools = append(opts.Tools, noting(&book, tool, traits[tool]))
				}
				return agentOf(t, script, opts)
			}
			first := with(scriptOf(calls("remote", "local")), "remote", "local")
			parked := takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked)
			for i, answer := range test.answers {
				if answer != "" {
					settleAs(t, first, parked.Waits[i].Approval, answer == "yes")
				}
			}
			again := take(with(scriptOf(says("done")), test.has...).Session("s").Resume(t.Context()))
			if missing, ok := errors.AsType[*belay.MissingToolError](again.err); ok || test.missing != nil {
				if !ok || !cmp.Equal(missing.Tools, test.missing) || missing.Session != "s" || missing.Turn != parked.ID {
					t.Fatalf("the error is %v, want one that names %v", again.err, test.missing)
				}
				if len(again.events) > 0 || len(book.all()) > 0 {
					t.Errorf("there are events %v, and these ran: %v", kindsOf(again.events), book.all())
				}
			} else if again.err != nil || again.Reason != test.reason {
				t.Fatalf("it ended %s, %v, want %s", again.Reason, again.err, test.reason)
			}
			if test.reason != belay.EndTurn { // the turn is still parked, and a process with the tools can resume it
				for i, answer := range test.answers {
					if answer == "" {
						settleAs(t, first, parked.Waits[i].Approval, true)
					}
				}
				takeTurn(t, with(scriptOf(says("done")), "remote", "local").Session("s").Resume(t.Context()), belay.EndTurn)
			}
			var want []string
			for _, tool := range test.ran {
				want = append(want, "run "+tool)
			}
			if diff := cmp.Diff(append(want, "end"), book.all()); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
			var classes []belay.ResultClass
			for _, r := range storedResults(t, first.Session("s")) {
				classes = append(classes, r.Class)
			}
			if diff := cmp.Diff(test.classes, classes); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// A turn that waits for a tool can be abandoned by a process without that tool.
//
// SPEC L-01
func TestATurnWithoutItsToolCanBeAbandoned(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	opts := &belay.Options{Store: store, OnAsk: belay.AskPark, Hooks: []hook.Subscription{gateOf("gate", belay.Ask("sure?"))}}
	with := *opts
	with.Tools = []belay.Tool{echoTool("remote")}
	first := agentOf(t, scriptOf(calls("remote")), &with)
	settleAs(t, first, takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked).Waits[0].Approval, true)
	s := agentOf(t, scriptOf(says("done")), opts).Session("s")
	if again := take(s.Resume(t.Context())); again.err == nil {
		t.Fatal("it was resumed")
	}
	if turn, err := s.Abandon(t.Context()); err != nil || turn.Reason != belay.EndAborted {
		t.Fatalf("abandoned: %+v, %v", turn, err)
	}
	takeTurn(t, s.Run(t.Context(), "go on"), belay.EndTurn)
}

// If a child cannot be resumed because a tool is missing, its parent stays parked too,
// and the error says why.
//
// SPEC S-10, L-01
func TestAChildWithoutItsToolParksItsParent(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	var book logbook
	family := func(parent, child *scripted.Model, tools ...belay.Tool) *belay.Agent {
		gate := gateOf("gate", belay.Ask("sure?"))
		factory := subagent.Agent(child, &belay.Options{Tools: tools, Hooks: []hook.Subscription{gate}})
		e, err := subagent.New(&subagent.Options{Subagents: []subagent.Subagent{{Name: "child", Factory: factory}}})
		if err != nil {
			t.Fatal(err)
		}
		return agentOf(t, parent, &belay.Options{Store: store, OnAsk: belay.AskPark, Extensions: []belay.Extension{e}})
	}
	first := family(scriptOf(callWith("invoke_subagent", `{"name":"child","prompt":"x"}`)), scriptOf(calls("remote")), noting(&book, "remote", nil))
	settleAs(t, first, takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked).Waits[0].Approval, true)
	again := take(family(scriptOf(), scriptOf()).Session("s").Resume(t.Context()))
	missing, ok := errors.AsType[*belay.MissingToolError](again.err)
	if !ok || !cmp.Equal(missing.Tools, []string{"remote"}) || again.Turn == nil || again.Reason != belay.EndParked {
		t.Fatalf("it ended %+v, %v, want parked for want of remote", again.Turn, again.err)
	}
	if end := again.of(belay.EventSubagentCompleted); len(end) != 1 || end[0].Subagent.Status != belay.ChildParked {
		t.Errorf("the child ended as %+v", end)
	}
	takeTurn(t, family(scriptOf(says("done")), scriptOf(says("child done")), noting(&book, "remote", nil)).Session("s").Resume(t.Context()), belay.EndTurn)
	if diff := cmp.Diff([]string{"run remote"}, book.all()); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
}

// If a call was running when its process ended, it gets an aborted result, even if its tool
// is missing now.
//
// SPEC L-01
func TestAnInterruptedCallWithoutItsTool(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	began := make(chan struct{})
	ctx, handOver := context.WithCancelCause(t.Context())
	tool := anyTool("remote", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
		close(began)
		<-ctx.Done()
		return belay.Result{}, context.Cause(ctx)
	}, nil)
	go func() {
		<-began
		handOver(belay.ErrHandedOver)
	}()
	first := agentOf(t, scriptOf(calls("remote")), &belay.Options{Store: store, Tools: []belay.Tool{tool}}).Session("s")
	if turn := take(first.Run(ctx, "go")); turn.Reason != belay.EndParked {
		t.Fatalf("it ended %s, %v", turn.Reason, turn.err)
	}
	s := agentOf(t, scriptOf(says("done")), &belay.Options{Store: store}).Session("s")
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	if r := onlyResult(t, s); r.Class != belay.ClassAborted {
		t.Errorf("the result for the model is %s: %s", r.Class, r.Text)
	}
}
