package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// childTool returns a tool that runs a turn of a subagent and returns the text of that
// turn.
func childTool(name string, child belay.Child, run func(ctx context.Context, call *belay.Invocation) iter.Seq2[belay.Event, error]) belay.Tool {
	return anyTool(name, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		turn, err := call.Controls().Child(ctx, child, func(ctx context.Context) iter.Seq2[belay.Event, error] { return run(ctx, call) })
		if err != nil {
			return belay.Result{}, err
		}
		if turn.Reason == belay.EndParked {
			return belay.Result{}, belay.Park("child " + child.Name)
		}
		return belay.Result{Text: turn.Text}, nil
	}, &belay.ToolTraits{Timeout: -1})
}

// childOf returns a tool that runs or resumes a turn in a session of the agent.
func childOf(name string, agent *belay.Agent) belay.Tool {
	return childTool(name, belay.Child{Name: name, Prompt: "do " + name, Run: "run-" + name}, func(ctx context.Context, call *belay.Invocation) iter.Seq2[belay.Event, error] {
		if call.Wait != "" {
			return agent.Session(call.Session + "/" + name).Resume(ctx)
		}
		return agent.Session(call.Session+"/"+name).Run(ctx, "do "+name)
	})
}

// brackets lists the events that begin and end child runs, with run, parent and depth.
func brackets(events []belay.Event) []string {
	var all []string
	for _, e := range events {
		if e.Subagent != nil {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s run=%s parent=%s depth=%d %s", e.Kind, e.Subagent.Name, e.Run, e.Parent, e.Depth, e.Subagent.Status)))
		}
	}
	return all
}

// SPEC S-04
func TestChildEventsReachTheParent(t *testing.T) {
	t.Parallel()
	inner, _ := newAgent(t, &belay.Options{Name: "inner"}, says("deep"))
	middle, _ := newAgent(t, &belay.Options{Name: "middle", Tools: []belay.Tool{childOf("inner", inner)}}, calls("inner"), says("half"))
	outer, _ := newAgent(t, &belay.Options{Name: "outer", Tools: []belay.Tool{childOf("middle", middle)}}, calls("middle"), says("whole"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watched := outer.Watch(ctx, &belay.WatchOptions{Session: "s"})
	turn := takeTurn(t, outer.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the brackets", brackets(turn.events), []string{
		"subagent_invoked middle run=run-middle parent= depth=1",
		"subagent_invoked inner run=run-inner parent=run-middle depth=2",
		"subagent_completed inner run=run-inner parent=run-middle depth=2 success",
		"subagent_completed middle run=run-middle parent= depth=1 success",
	})
	var seen []belay.Event
	for e, err := range watched {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, e); e.End != nil && e.Depth == 0 {
			break
		}
	}
	var got, want []string
	for i, e := range seen {
		got = append(got, fmt.Sprint(e.Kind, e.Run))
		if e.Seq != uint64(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
	}
	for _, e := range turn.events {
		want = append(want, fmt.Sprint(e.Kind, e.Run))
	}
	wantEqual(t, "what the watcher saw", got, want)
	ends := 0
	for _, e := range seen {
		switch {
		case e.Agent == "inner" && (e.Run != "run-inner" || e.Parent != "run-middle" || e.Depth != 2):
			t.Errorf("an event of the inner agent is tagged %q, %q, %d", e.Run, e.Parent, e.Depth)
		case e.Agent == "inner" && e.Kind == belay.EventTurnEnd:
			ends++
		}
	}
	wantEqual(t, "how often the inner turn ended", ends, 1)
}

// SPEC S-04: if an agent runs itself as a child, its watchers get each event once.
func TestChildEventsOfTheSameAgent(t *testing.T) {
	t.Parallel()
	var agent *belay.Agent
	again := childTool("again", belay.Child{Name: "again", Run: "r"}, func(ctx context.Context, _ *belay.Invocation) iter.Seq2[belay.Event, error] {
		return agent.Session("child").Run(ctx, "deeper")
	})
	agent, _ = newAgent(t, &belay.Options{Tools: []belay.Tool{again}}, calls("again"), says("inside"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watched := agent.Watch(ctx, nil)
	takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	count := make(map[string]int)
	for e, err := range watched {
		if err != nil {
			t.Fatal(err)
		}
		if count[fmt.Sprint(e.Kind, " ", e.Run)]++; e.End != nil && e.Run == "" {
			break
		}
	}
	wantEqual(t, "the ends", []int{count["turn_end r"], count["turn_end "]}, []int{1, 1})
}

// SPEC S-07
func TestChildrenInheritHooks(t *testing.T) {
	t.Parallel()
	var d diary
	saw := func(id string, opts *hook.Options, verdict belay.ToolVerdict) hook.Subscription {
		return belay.ToolPre.On(id, func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			d.notef("%s: %s of %s", id, call.Tool(), call.Agent())
			return verdict, nil
		}, opts)
	}
	shared := saw("shared", &hook.Options{Priority: -1}, belay.Pass)
	ran := 0
	write := anyTool("write", func(context.Context, *belay.Invocation) (belay.Result, error) {
		ran++
		return belay.Result{Text: "written"}, nil
	}, nil)
	child, _ := newAgent(t, &belay.Options{Name: "child", Tools: []belay.Tool{write}, Hooks: []hook.Subscription{
		shared, saw("no-writes", &hook.Options{Priority: -1}, belay.Pass), // same id as a gate of the parent, but does not replace that gate
	}}, calls("write"))
	parent, _ := newAgent(t, &belay.Options{Name: "parent", Tools: []belay.Tool{childOf("child", child)}, Hooks: []hook.Subscription{
		shared, saw("own", &hook.Options{NoInherit: true}, belay.Pass),
		saw("no-writes", &hook.Options{Match: hook.Match{Tools: []string{"write"}}}, belay.Deny("not here")),
	}}, calls("child"))
	s := parent.Session("s")
	takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	if ran != 0 {
		t.Error("the forbidden call ran")
	}
	got := d.all()
	slices.Sort(got)
	wantEqual(t, "who was asked", got, []string{
		"no-writes: write of child", "no-writes: write of child", "own: child of parent", "shared: child of parent", "shared: write of child",
	})
	denied := storedResults(t, child.Session("s/child"))
	if len(denied) != 1 || denied[0].Class != belay.ClassDenied || !strings.Contains(denied[0].Text, "inherited:no-writes") {
		t.Errorf("the child got %+v", denied)
	}
}

// SPEC S-07, P-07: a child may do at most what its parent may.
func TestChildrenInheritTheFloor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		parent, child belay.ToolDecision
		want          belay.ResultClass
	}{
		{"the parent's denial holds where the child has no floor", belay.ToolDeny, "none", belay.ClassDenied},
		{"the parent's denial beats the child's consent", belay.ToolDeny, belay.ToolPass, belay.ClassDenied},
		{"the child's denial holds too", belay.ToolPass, belay.ToolDeny, belay.ClassDenied},
		{"consent of both", belay.ToolPass, belay.ToolPass, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			floor := func(d belay.ToolDecision) belay.Authorizer {
				return floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
					if call.Tool() != "echo" {
						return belay.Authorization{}, nil
					}
					return belay.Authorization{Decision: d, Reason: "because", By: "test"}, nil
				})
			}
			opts := &belay.Options{Tools: []belay.Tool{echoTool("echo")}}
			if test.child != "none" {
				opts.Authorizer = floor(test.child)
			}
			child, _ := newAgent(t, opts, calls("echo"))
			parent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{childOf("child", child)}, Authorizer: floor(test.parent)}, calls("child"))
			takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			if got := onlyResult(t, child.Session("s/child")); got.Class != test.want {
				t.Errorf("the call came out as %q: %s", got.Class, got.Text)
			}
		})
	}
}

// SPEC S-07
func TestChildrenKeepToTheParentsScope(t *testing.T) {
	t.Parallel()
	child, model := newAgent(t, &belay.Options{Tools: []belay.Tool{echoTool("read"), echoTool("write")}}, calls("write"))
	parent, _ := newAgent(t, &belay.Options{Scope: []string{"child", "read"}, Tools: []belay.Tool{childOf("child", child)}}, calls("child"))
	takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if got := onlyResult(t, child.Session("s/child")); got.Class != belay.ClassScope {
		t.Errorf("the call came out as %q: %s", got.Class, got.Text)
	}
	wantEqual(t, "what the child was offered", toolNames(model), []string{"read", "read"})
}

// SPEC S-07, L-07
func TestChildrenSpendTheParentsBudget(t *testing.T) {
	t.Parallel()
	costly := scripted.Step{Calls: []scripted.Call{{Tool: "echo", Input: `{"n":1}`}}, Usage: belay.Usage{In: 40, Cost: 1}}
	dear := costly
	dear.Calls = []scripted.Call{{Tool: "echo", Input: `{"n":2}`}}
	child, _ := newAgent(t, &belay.Options{Name: "child", Tools: []belay.Tool{echoTool("echo")}}, costly, dear, costly, dear)
	parent, _ := newAgent(t, &belay.Options{Name: "parent", Tools: []belay.Tool{childOf("child", child)}, Budget: belay.Budget{TurnTokens: 100}},
		scripted.Step{Calls: []scripted.Call{{Tool: "child"}}, Usage: belay.Usage{In: 10}})
	s := parent.Session("s")
	turn := takeTurn(t, s.Run(t.Context(), "go"), belay.EndBudget)
	if got := onlyResult(t, s); !strings.Contains(got.Text, "budget") || !strings.Contains(got.Text, "parent") {
		t.Errorf("the parent got %q", got.Text)
	}
	wantEqual(t, "what the turn took", turn.Usage, belay.Usage{In: 130, Cost: 3})
	wantEqual(t, "what the session took", s.Usage(), belay.Usage{In: 130, Cost: 3})
	wantEqual(t, "what the child took", child.Session("s/child").Usage(), belay.Usage{In: 120, Cost: 3})
}

// SPEC S-05
func TestChildrenGoOnlySoDeep(t *testing.T) {
	t.Parallel()
	var agents []*belay.Agent
	below := echoTool("bottom")
	for depth := 3; depth >= 0; depth-- {
		agent, _ := newAgent(t, &belay.Options{Name: fmt.Sprint("a", depth), Tools: []belay.Tool{below}, Limits: belay.Limits{Depth: 2}},
			calls(below.Declaration().Name))
		agents = append(agents, agent)
		below = childOf(fmt.Sprint("c", depth), agent)
	}
	turn := takeTurn(t, agents[3].Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if n := len(brackets(turn.events)); n != 4 {
		t.Errorf("there are %d brackets: %v", n, brackets(turn.events))
	}
	var told string
	for _, e := range turn.events {
		if e.Kind == belay.EventToolUseResult && e.Depth == 2 {
			told = e.Result.Text
		}
	}
	if !strings.Contains(told, "c1 → c2 → c3") {
		t.Errorf("the deepest child got %q", told)
	}
}

// SPEC S-05
func TestChildrenInACircle(t *testing.T) {
	t.Parallel()
	var b *belay.Agent
	toB := childTool("b", belay.Child{Name: "b"}, func(ctx context.Context, call *belay.Invocation) iter.Seq2[belay.Event, error] {
		return b.Session(call.Session+"/b").Run(ctx, "go")
	})
	a, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{toB}}, calls("b"))
	b, _ = newAgent(t, &belay.Options{Tools: []belay.Tool{childOf("a", a)}}, calls("a"))
	top, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{childOf("a", a)}}, calls("a"))
	turn := takeTurn(t, top.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	var told []string
	for _, e := range turn.events {
		if e.Kind == belay.EventToolUseResult && e.Result.IsError {
			told = append(told, e.Result.Text)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "a → b → a") {
		t.Errorf("the message about the cycle is %q", told)
	}
}

// SPEC S-04
func TestChildrenThatDoNotEndWell(t *testing.T) {
	t.Parallel()
	one := func(events ...belay.Event) iter.Seq2[belay.Event, error] {
		return func(yield func(belay.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	for _, test := range []struct {
		name         string
		take         func() iter.Seq2[belay.Event, error]
		status, told string
	}{
		{"a runner that says something and no more", func() iter.Seq2[belay.Event, error] {
			return one(belay.Event{Kind: belay.EventTextDelta, Text: "fine"})
		}, "success", "fine"},
		{"an error", func() iter.Seq2[belay.Event, error] {
			return func(yield func(belay.Event, error) bool) { yield(belay.Event{}, errors.New("no line")) }
		}, "error", "no line"},
		{"a panic", func() iter.Seq2[belay.Event, error] { panic("no line") }, "error", "no line"},
		{"a turn that ended otherwise", func() iter.Seq2[belay.Event, error] {
			return one(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: belay.EndMaxSteps, Text: "half"}})
		}, "error", "max_steps"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var d diary
			tool := childTool("child", belay.Child{Name: "child", Run: "r"}, func(context.Context, *belay.Invocation) iter.Seq2[belay.Event, error] { return test.take() })
			agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{
				belay.SubagentStart.On("start", func(_ context.Context, c belay.SubagentCall) (belay.SubagentVerdict, error) {
					d.notef("start %s %d", c.Run(), c.Depth())
					return belay.SubagentVerdict{}, nil
				}, nil),
				belay.SubagentStop.On("stop", func(_ context.Context, r belay.SubagentReturn) (belay.Note, error) {
					d.notef("stop %s %s", r.Run(), r.Status())
					return belay.Note{}, nil
				}, nil),
			}}, calls("child"))
			s := agent.Session("s")
			turn := takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
			wantEqual(t, "the brackets", brackets(turn.events), []string{
				"subagent_invoked child run=r parent= depth=1", "subagent_completed child run=r parent= depth=1 " + test.status,
			})
			wantEqual(t, "the phases", d.all(), []string{"start r 1", "stop r " + test.status})
			if got := onlyResult(t, s); !strings.Contains(got.Text, test.told) || got.IsError != (test.status != "success") {
				t.Errorf("the model got %q", got.Text)
			}
		})
	}
}

// SPEC S-04: if a hook at subagent.start denies a child, the child does not run, and its
// start event and its end event are still emitted.
func TestChildrenDenied(t *testing.T) {
	t.Parallel()
	began := false
	var stopped []string
	tool := childTool("child", belay.Child{Name: "child", Run: "r"}, func(context.Context, *belay.Invocation) iter.Seq2[belay.Event, error] {
		began = true
		return func(func(belay.Event, error) bool) {}
	})
	agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{
		belay.SubagentStart.On("no-children", func(context.Context, belay.SubagentCall) (belay.SubagentVerdict, error) {
			return belay.DenySubagent("not today"), nil
		}, nil),
		belay.SubagentStop.On("stop", func(_ context.Context, r belay.SubagentReturn) (belay.Note, error) {
			stopped = append(stopped, r.Status())
			return belay.Note{}, nil
		}, nil),
	}}, calls("child"))
	s := agent.Session("s")
	turn := takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	if began {
		t.Error("the child was begun")
	}
	if got := onlyResult(t, s); !strings.Contains(got.Text, "no-children") || !strings.Contains(got.Text, "not today") {
		t.Errorf("the model got %q", got.Text)
	}
	wantEqual(t, "the stops", stopped, []string{"denied"})
	wantEqual(t, "how many brackets", len(brackets(turn.events)), 2)
}

// SPEC S-04, S-05: a child that ignores an abort is abandoned, and subagent.stop fires.
func TestChildrenThatHeedNoAbort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		tool := childTool("child", belay.Child{Name: "child", Run: "r"}, func(context.Context, *belay.Invocation) iter.Seq2[belay.Event, error] {
			return func(yield func(belay.Event, error) bool) {
				close(began)
				<-release
				yield(belay.Event{Kind: belay.EventTextDelta, Text: "too late"}, nil)
			}
		})
		agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}}, calls("child"))
		ctx, abort := context.WithCancel(t.Context())
		go func() {
			<-began
			abort()
		}()
		all := take(agent.Session("s").Run(ctx, "go"))
		if all.Reason != belay.EndAborted {
			t.Errorf("the turn ended %s", all.Reason)
		}
		wantEqual(t, "the brackets", brackets(all.events), []string{
			"subagent_invoked child run=r parent= depth=1", "subagent_completed child run=r parent= depth=1 aborted",
		})
		close(release)
		synctest.Wait()
		for _, e := range all.events {
			if e.Text == "too late" {
				t.Error("the late text of the child was shown")
			}
		}
	})
}

// SPEC S-10: a child's approval goes to the parent's approver, unless the child is
// isolated.
func TestChildrenAskWhereTheParentAsks(t *testing.T) {
	t.Parallel()
	for _, isolated := range []bool{false, true} {
		t.Run(fmt.Sprint("isolated ", isolated), func(t *testing.T) {
			t.Parallel()
			asked := make(chan belay.Question, 2)
			approver := func(name string) belay.Approver {
				return approverFunc(func(_ context.Context, q belay.Question) (belay.Decision, error) {
					q.Reason = name
					asked <- q
					return belay.Decision{Allow: true, By: name}, nil
				})
			}
			child, _ := newAgent(t, &belay.Options{Name: "child", Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{gateOf("ask", belay.Ask("sure?"))}, Approver: approver("child's")}, calls("echo"))
			tool := childTool("child", belay.Child{Name: "child", Run: "r", Isolated: isolated}, func(ctx context.Context, _ *belay.Invocation) iter.Seq2[belay.Event, error] {
				return child.Session("c").Run(ctx, "go")
			})
			parent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Approver: approver("parent's")}, calls("child"))
			takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			q := <-asked
			want := map[bool]string{false: "parent's", true: "child's"}[isolated]
			if q.Reason != want || q.Agent != "child" || q.Run != "r" || q.Depth != 1 || q.Session != "c" {
				t.Errorf("the question is %+v", q)
			}
		})
	}
}

// SPEC S-10: a parked child parks the parent, and resuming the parent finishes both.
func TestParkedChildrenParkTheParent(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	ran := 0
	write := anyTool("write", func(context.Context, *belay.Invocation) (belay.Result, error) {
		ran++
		return belay.Result{Text: "written"}, nil
	}, nil)
	child, _ := newAgent(t, &belay.Options{Name: "child", Store: store, Tools: []belay.Tool{write}, Hooks: []hook.Subscription{gateOf("ask", belay.Ask("sure?"))}}, calls("write"), says("wrote it"))
	parent, _ := newAgent(t, &belay.Options{Store: store, Tools: []belay.Tool{childOf("child", child)}, OnAsk: belay.AskPark}, calls("child"), says("all done"))
	s := parent.Session("s")
	turn := takeTurn(t, s.Run(t.Context(), "go"), belay.EndParked)
	wantEqual(t, "the last bracket", brackets(turn.events)[1], "subagent_completed child run=run-child parent= depth=1 parked")
	if len(turn.Waits) != 1 || turn.Waits[0].Session != "s/child" || turn.Waits[0].Run != "run-child" {
		t.Fatalf("the parent waits for %+v", turn.Waits)
	}
	takeTurn(t, s.Resume(t.Context()), belay.EndParked) // no decision has been made yet
	_, err := parent.Decide(t.Context(), belay.Decision{Approval: turn.Waits[0].ID, Hash: turn.Waits[0].Hash, Allow: true, By: "ada"})
	succeeds(t, err)
	turn = takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	wantEqual(t, "the answer", turn.Text, "all done")
	wantEqual(t, "how often the tool ran", ran, 1)
	wantEqual(t, "the child's answer", onlyResult(t, s).Text, "wrote it")
}

// SPEC S-10: if a child asks the user a question, the question goes to the parent's asker.
func TestChildrenAskInWords(t *testing.T) {
	t.Parallel()
	ask := anyTool("ask", func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		answer, err := call.Controls().Ask(ctx, "which one?")
		return belay.Result{Text: answer}, err
	}, nil)
	child, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{ask}}, calls("ask"))
	parent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{childOf("child", child)},
		Asker: askerFunc(func(q belay.Inquiry) (string, error) {
			return fmt.Sprintf("the left one, %s, %s at %d", q.Session, q.Run, q.Depth), nil
		}),
	}, calls("child"))
	takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the answer", onlyResult(t, child.Session("s/child")).Text, "the left one, s/child, run-child at 1")
}

// SPEC S-10, P-07: if the parent's floor asks for approval of a child's call, a hook of the
// child cannot approve it.
func TestChildrenDoNotApproveForThemselves(t *testing.T) {
	t.Parallel()
	ran, asked := 0, 0
	write := anyTool("write", func(context.Context, *belay.Invocation) (belay.Result, error) {
		ran++
		return belay.Result{Text: "written"}, nil
	}, nil)
	yes := belay.ApprovalRequest.On("yes", func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
		return belay.ApprovalVerdict{Decision: "allow"}, nil
	}, &hook.Options{Capabilities: hook.CanApprove})
	child, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{write}, Hooks: []hook.Subscription{yes}}, calls("write"))
	parent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{childOf("child", child)},
		Authorizer: floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
			if call.Tool() == "write" {
				return belay.Authorization{Decision: belay.ToolAsk, Reason: "sure?", By: "zone 4"}, nil
			}
			return belay.Authorization{}, nil
		}),
		Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
			asked++
			return belay.Decision{By: "ada", Reason: "no"}, nil
		}),
	}, calls("child"))
	takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if ran != 0 || asked != 1 {
		t.Errorf("the tool ran %d times, and the parent's person was asked %d times", ran, asked)
	}
}

// SPEC H-14, S-07: a gate that is installed in the parent while a child runs applies from
// the child's next step on, and runs once for each call.
func TestChildrenInheritGatesThatComeLater(t *testing.T) {
	t.Parallel()
	var parent *belay.Agent
	ran, asked := 0, 0
	lock := anyTool("lock", func(context.Context, *belay.Invocation) (belay.Result, error) {
		_, err := parent.Hooks().Install(belay.ToolPre.On("locked", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			asked++
			return belay.Deny("locked"), nil
		}, &hook.Options{Match: hook.Match{Tools: []string{"write"}}}))
		return belay.Result{Text: "locked"}, err
	}, nil)
	write := anyTool("write", func(context.Context, *belay.Invocation) (belay.Result, error) {
		ran++
		return belay.Result{Text: "written"}, nil
	}, nil)
	child, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{lock, write}, Hooks: []hook.Subscription{gateOf("locked", belay.Pass)}},
		calls("lock"), calls("write"), callWith("write", `{"again":true}`))
	parent, _ = newAgent(t, &belay.Options{Tools: []belay.Tool{childOf("child", child)}}, calls("child"))
	takeTurn(t, parent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
	if ran != 0 || asked != 2 {
		t.Errorf("the tool ran %d times, and the gate was asked %d times", ran, asked)
	}
}

// SPEC S-07, L-07: the usage of a child counts for the parent's turn, also if a directive
// started the child, and also if the child fails.
func TestChildrenAlwaysCost(t *testing.T) {
	t.Parallel()
	costs := func(reason belay.EndReason) func(context.Context) iter.Seq2[belay.Event, error] {
		return func(context.Context) iter.Seq2[belay.Event, error] {
			return func(yield func(belay.Event, error) bool) {
				yield(belay.Event{Kind: belay.EventTurnEnd, End: &belay.Turn{Reason: reason, Usage: belay.Usage{In: 10, Cost: 2}}}, nil)
			}
		}
	}
	agent, _ := newAgent(t, &belay.Options{
		Tools: []belay.Tool{anyTool("child", func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
			_, err := call.Controls().Child(ctx, belay.Child{Name: "proxy"}, costs(belay.EndMaxSteps))
			return belay.Result{}, err
		}, nil)},
		Directives: []belay.Directive{withControls("child", func(ctx context.Context, c *belay.Controls) error {
			_, err := c.Child(ctx, belay.Child{Name: "proxy"}, costs(belay.EndTurn))
			return err
		})},
	}, says("one"), calls("child"))
	s := agent.Session("s")
	first := takeTurn(t, s.Run(t.Context(), "/child"), belay.EndTurn)
	second := takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	if first.Usage.Cost != 2 || second.Usage.Cost != 2 {
		t.Errorf("the turns cost %v and %v", first.Usage.Cost, second.Usage.Cost)
	}
}

// SPEC S-07: the parent's hooks at session.start and session.end also run for the sessions
// of its children.
func TestChildrenInheritTheEndOfSessions(t *testing.T) {
	t.Parallel()
	var d logbook
	child, _ := newAgent(t, &belay.Options{Name: "child"}, says("done"))
	tool := childTool("child", belay.Child{Name: "child"}, func(ctx context.Context, _ *belay.Invocation) iter.Seq2[belay.Event, error] {
		return func(yield func(belay.Event, error) bool) {
			session := child.Session("c")
			for e, err := range session.Run(ctx, "go") {
				yield(e, err)
			}
			if err := session.Close(ctx); err != nil {
				yield(belay.Event{}, err)
			}
		}
	})
	parent, _ := newAgent(t, &belay.Options{Name: "parent", Tools: []belay.Tool{tool}, Hooks: []hook.Subscription{
		belay.SessionStart.On("begins", func(_ context.Context, s belay.SessionOpened) (belay.Aside, error) {
			d.notef("%s begins", s.Session())
			return belay.Aside{}, nil
		}, nil),
		belay.SessionEnd.On("ends", func(_ context.Context, s belay.SessionClosed) (belay.Note, error) {
			d.notef("%s ends", s.Session())
			return belay.Note{}, nil
		}, nil),
	}}, calls("child"))
	s := parent.Session("p")
	takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	succeeds(t, s.Close(t.Context()))
	wantEqual(t, "what the parent's hooks saw", d.all(), []string{"p begins", "c begins", "c ends", "p ends"})
}

// SPEC S-07: if a parent's hook names a model for the child, and the child cannot find it,
// the model is looked up in the parent.
func TestChildrenFindTheModelOfAParentsPolicy(t *testing.T) {
	t.Parallel()
	small := scripted.New([]scripted.Step{says("small")}, &scripted.Options{FollowTranscript: true})
	child, _ := newAgent(t, &belay.Options{Name: "child"}, says("its own"))
	parent, _ := newAgent(t, &belay.Options{
		Name: "parent", Tools: []belay.Tool{childOf("child", child)},
		Models: func(_ context.Context, name string) (belay.Model, error) {
			if name != "small" {
				return nil, errors.New("no such model")
			}
			return small, nil
		},
		Hooks: []hook.Subscription{belay.TurnPrePolicy.On("cheap", func(_ context.Context, b belay.TurnBegun) (belay.TurnPolicy, error) {
			if b.Agent() == "child" {
				return belay.SetPolicy(belay.PolicyModel.Set("small")), nil
			}
			return belay.TurnPolicy{}, nil
		}, nil)},
	}, calls("child"))
	s := parent.Session("s")
	takeTurn(t, s.Run(t.Context(), "go"), belay.EndTurn)
	wantEqual(t, "the child's answer", onlyResult(t, s).Text, "small")
}
