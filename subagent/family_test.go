package subagent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

func level(depth int) string { return fmt.Sprintf("level%d", depth) }

// chain makes a chain of agents in which each agent calls the next. It returns the first
// agent. The given subagent is the last one.
func chain(t *testing.T, store belay.Store, depth int, deepest subagent.Subagent, main *belay.Options) *belay.Agent {
	t.Helper()
	deepest.Name = level(depth)
	below := deepest
	for d := depth - 1; d >= 1; d-- {
		model := script(calls(invoke(level(d+1), "go on")), tells(level(d)))
		below = subagent.Subagent{Name: level(d), Factory: subagent.Agent(model, &belay.Options{
			Extensions: []belay.Extension{newExtension(t, nil, below)},
		})}
	}
	opts := *main
	opts.Store = store
	opts.Extensions = append(opts.Extensions, newExtension(t, nil, below))
	return newAgent(t, script(calls(invoke(level(1), "go on")), tells("main")), &opts)
}

// SPEC S-03, S-04, S-05
func TestAFailureAtDepthThree(t *testing.T) {
	t.Parallel()
	tool := belay.NewTool("work", "works", func(context.Context, struct{}) (string, error) { panic("the tool's own") }, nil)
	for _, test := range []struct {
		rule    string
		deepest subagent.Factory
		status  string
		want    string // a part of the result that reaches the main agent
	}{
		{"success", answers("forty-two"), "success", `level1 heard {\"subagent\":\"level2\"`},
		{"a factory that fails", func(context.Context, *subagent.Task) (subagent.Runner, error) { return nil, errors.New("no key") }, "error", "its factory failed: no key"},
		{"a factory that panics", func(context.Context, *subagent.Task) (subagent.Runner, error) { panic("oops") }, "error", "panicked: oops"},
		{"a run that panics between events", func(context.Context, *subagent.Task) (subagent.Runner, error) {
			return runner(func(context.Context, string) iter.Seq2[belay.Event, error] {
				return func(yield func(belay.Event, error) bool) {
					yield(belay.Event{Kind: belay.EventTextDelta, Text: "and then"}, nil)
					panic("oops")
				}
			}), nil
		}, "error", "panicked: oops"},
		{"a model that panics", subagent.Agent(script(scripted.Step{Compute: func(context.Context, *belay.Request) (scripted.Step, error) { panic("oops") }}), nil), "error", "panicked: oops"},
		{"a tool that panics is the child's own matter", subagent.Agent(script(calls(call("work", nil)), tells("level3")), &belay.Options{Tools: []belay.Tool{tool}}), "success", "the tool panicked: the tool's own"},
		{"a model that fails", subagent.Agent(script(scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelInvalid, Message: "bad request"}}), nil), "error", "bad request"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, store belay.Store) {
				agent := chain(t, store, 3, subagent.Subagent{Factory: test.deepest}, &belay.Options{})
				h := take(t, agent.Session("s").Run(t.Context(), "go"))
				h.ended(t, belay.EndTurn)
				if want := "+level1 +level2 +level3 -level3 " + test.status + " -level2 success -level1 success"; h.brackets() != want {
					t.Errorf("brackets = %s, want %s", h.brackets(), want)
				}
				if !strings.Contains(h.end.Text, test.want) {
					t.Errorf("the main agent heard %s, want %q in it", h.end.Text, test.want)
				}
				take(t, agent.Session("s2").Run(t.Context(), "again")).ended(t, belay.EndTurn) // the agent is still usable
			})
		})
	}
}

// SPEC S-04, S-05
func TestAnAbortReachesDepthThree(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		ctx, abort := context.WithCancelCause(t.Context())
		defer abort(nil)
		why := errors.New("the user has left")
		var told error
		deepest := subagent.Canned(func(ctx context.Context, _ string) (string, error) {
			abort(why)
			<-ctx.Done()
			told = context.Cause(ctx)
			return "", told
		})
		agent := chain(t, store, 3, subagent.Subagent{Factory: deepest}, &belay.Options{})
		h := take(t, agent.Session("s").Run(ctx, "go"))
		h.ended(t, belay.EndAborted)
		if want := "+level1 +level2 +level3 -level3 aborted -level2 aborted -level1 aborted"; h.brackets() != want {
			t.Errorf("brackets = %s, want %s", h.brackets(), want)
		}
		if !errors.Is(told, why) {
			t.Errorf("the deepest was cancelled because of %v, want %v", told, why)
		}
		for _, e := range h.events {
			if e.Kind == belay.EventTurnEnd && e.End.Reason != belay.EndAborted {
				t.Errorf("a turn at depth %d ended %s", e.Depth, e.End.Reason)
			}
		}
	})
}

// SPEC S-04, S-05
func TestATimeoutAtDepthThree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deepest := subagent.Canned(func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		agent := chain(t, memstore.New(nil), 3, subagent.Subagent{Factory: deepest, Timeout: 7 * time.Minute}, &belay.Options{})
		start := time.Now()
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndTurn)
		if want := "+level1 +level2 +level3 -level3 aborted -level2 success -level1 success"; h.brackets() != want {
			t.Errorf("brackets = %s, want %s", h.brackets(), want)
		}
		if took := time.Since(start); took != 7*time.Minute {
			t.Errorf("it took %s, want 7m0s: the subagent's own bound, and not that of tools", took)
		}
		if !strings.Contains(h.end.Text, "did not answer within 7m0s and was cancelled") {
			t.Errorf("the main agent heard %s", h.end.Text)
		}
	})
}

// SPEC S-04: a child that ignores its context is abandoned, and its events
// still come in pairs.
func TestAStubbornChildAtDepthThree(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"timeout", "abort"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, abort := context.WithCancel(t.Context())
				defer abort()
				free := make(chan struct{})
				deepest := subagent.Canned(func(context.Context, string) (string, error) {
					if how == "abort" {
						abort()
					}
					<-free
					return "too late", nil
				})
				agent := chain(t, memstore.New(nil), 3, subagent.Subagent{Factory: deepest, Timeout: time.Minute}, &belay.Options{})
				h := take(t, agent.Session("s").Run(ctx, "go"))
				if how == "abort" {
					h.ended(t, belay.EndAborted)
				} else {
					h.ended(t, belay.EndTurn)
				}
				if !strings.HasPrefix(h.brackets(), "+level1 +level2 +level3 -level3 aborted -level2 ") {
					t.Errorf("brackets = %s", h.brackets())
				}
				close(free)
			})
		})
	}
}

// SPEC S-05
func TestDepthIsLimited(t *testing.T) {
	t.Parallel()
	agent := chain(t, nil, 6, subagent.Subagent{Factory: answers("too deep")}, &belay.Options{})
	h := take(t, agent.Session("s").Run(t.Context(), "go"))
	h.ended(t, belay.EndTurn)
	if strings.Contains(h.brackets(), "level6") || !strings.Contains(h.brackets(), "+level5 -level5 success") {
		t.Errorf("brackets = %s, want five levels", h.brackets())
	}
	if !strings.Contains(h.end.Text, "the maximum depth of subagents is 5, and this one would be at depth 6 (level1 → level2 → level3 → level4 → level5 → level6)") {
		t.Errorf("the main agent heard %s", h.end.Text)
	}
}

// SPEC S-05
func TestAChildThatCallsItsParent(t *testing.T) {
	t.Parallel()
	e := newExtension(t, nil)
	shared := []belay.Extension{e}
	if _, err := e.Add(
		subagent.Subagent{Name: "ping", Factory: subagent.Agent(script(calls(invoke("pong", "x")), tells("ping")), &belay.Options{Extensions: shared}), Durable: true},
		subagent.Subagent{Name: "pong", Factory: subagent.Agent(script(calls(invoke("ping", "x")), tells("pong")), &belay.Options{Extensions: shared}), Durable: true},
	); err != nil {
		t.Fatal(err)
	}
	agent := newAgent(t, script(calls(invoke("ping", "x")), tells("main")), &belay.Options{Extensions: shared})
	h := take(t, agent.Session("s").Run(t.Context(), "go"))
	h.ended(t, belay.EndTurn)
	if want := "+ping +pong -pong success -ping success"; h.brackets() != want {
		t.Errorf("brackets = %s, want %s", h.brackets(), want)
	}
	if !strings.Contains(h.end.Text, "would wait for itself (ping → pong → ping)") {
		t.Errorf("the main agent heard %s", h.end.Text)
	}
}

// SPEC S-07
func TestTheParentsHooksHoldInAChild(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		ran := 0
		remove := belay.NewTool("remove", "removes", func(context.Context, struct{ Path string }) (string, error) { ran++; return "removed", nil }, nil)
		gate := belay.ToolPre.On("no-remove", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			return belay.Deny("nothing is removed here"), nil
		}, &hook.Options{Match: hook.Match{Tools: []string{"remove"}}})
		own := belay.ToolPre.On("own", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
			if call.Tool() == "remove" {
				t.Error("a hook that is not inherited was asked about a child's call")
			}
			return belay.Pass, nil
		}, &hook.Options{NoInherit: true})
		child := subagent.Agent(script(calls(call("remove", `{"Path": "x"}`)), tells("child")), &belay.Options{Tools: []belay.Tool{remove}})
		agent := chain(t, store, 3, subagent.Subagent{Factory: child}, &belay.Options{Hooks: []hook.Subscription{gate, own}})
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndTurn)
		if ran != 0 || !strings.Contains(h.end.Text, "nothing is removed here") {
			t.Errorf("the forbidden tool ran %d times, and the main agent heard %s", ran, h.end.Text)
		}
	})
}

// authorizer is a floor (permission check) that calls a function.
type authorizer func(call belay.ToolCall) belay.Authorization

func (a authorizer) Authorize(_ context.Context, call belay.ToolCall) (belay.Authorization, error) {
	return a(call), nil
}

// SPEC S-07
func TestTheParentsFloorHoldsInAChild(t *testing.T) {
	t.Parallel()
	ran := 0
	remove := belay.NewTool("remove", "removes", func(context.Context, struct{}) (string, error) { ran++; return "removed", nil }, nil)
	floor := authorizer(func(call belay.ToolCall) belay.Authorization {
		if call.Tool() == "remove" {
			return belay.Authorization{Decision: belay.ToolDeny, Reason: "the floor says no", By: "floor"}
		}
		return belay.Authorization{}
	})
	child := subagent.Agent(script(calls(call("remove", nil)), tells("child")), &belay.Options{Tools: []belay.Tool{remove}})
	agent := chain(t, nil, 2, subagent.Subagent{Factory: child}, &belay.Options{Authorizer: floor})
	h := take(t, agent.Session("s").Run(t.Context(), "go"))
	h.ended(t, belay.EndTurn)
	if ran != 0 || !strings.Contains(h.end.Text, "the floor says no") {
		t.Errorf("the forbidden tool ran %d times, and the main agent heard %s", ran, h.end.Text)
	}
}

// SPEC S-07
func TestCostsRollUpAndTheParentsBudgetEndsAChild(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		work := belay.NewTool("work", "works", func(context.Context, struct{}) (string, error) { return "worked", nil }, nil)
		family := func(budget belay.Budget) *heard {
			expensive := scripted.Step{Text: "on it", Calls: []scripted.Call{call("work", nil)}, Usage: belay.Usage{In: 400, Out: 100, Cost: 0.5}}
			last := scripted.Step{Text: "done", Usage: belay.Usage{In: 400, Out: 100, Cost: 0.5}}
			child := subagent.Agent(script(expensive, expensive, last), &belay.Options{Tools: []belay.Tool{work}})
			e := newExtension(t, nil, subagent.Subagent{Name: "child", Factory: child})
			main := scripted.Step{Calls: []scripted.Call{invoke("child", "x")}, Usage: belay.Usage{In: 10, Out: 1, Cost: 0.01}}
			end := scripted.Step{Text: "done", Usage: belay.Usage{In: 20, Out: 2, Cost: 0.02}}
			agent := newAgent(t, script(main, end), &belay.Options{Store: store, Extensions: []belay.Extension{e}, Budget: budget})
			return take(t, agent.Session(fmt.Sprint(budget)).Run(t.Context(), "go"))
		}
		h := family(belay.Budget{})
		h.ended(t, belay.EndTurn)
		if u := h.end.Usage; u.In != 1230 || u.Out != 303 || u.Cost < 1.529 || u.Cost > 1.531 {
			t.Errorf("usage = %+v, want that of the child too", u)
		}
		h = family(belay.Budget{TurnTokens: 900})
		if want := "+child -child error"; h.brackets() != want {
			t.Errorf("brackets = %s, want %s", h.brackets(), want)
		}
		h.ended(t, belay.EndBudget) // the parent's budget is used up too
		if r := h.results()[0]; !r.IsError || !strings.Contains(r.Text, "the subagent's turn ended with budget: agent main, with its subagents") {
			t.Errorf("the result is %+v", r)
		}
		if u := h.end.Usage; u.In != 810 || u.Out != 201 {
			t.Errorf("usage = %+v, want two steps of the child", u)
		}
	})
}

// SPEC S-09
func TestSubagentsOfOneMessageRunAtTheSameTime(t *testing.T) {
	t.Parallel()
	const n = 4
	for _, test := range []struct {
		rule string
		step scripted.Step
	}{
		{"several calls of invoke_subagent", calls(invoke("child", "1"), invoke("child", "2"), invoke("child", "3"), invoke("child", "4"))},
		{"one call of delegate", calls(call("delegate", `{"tasks":[{"name":"child","prompt":"1"},{"name":"child","prompt":"2"},{"name":"child","prompt":"3"},{"name":"child","prompt":"4"}]}`))},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var all sync.WaitGroup // a barrier: no child answers before all were asked
			all.Add(n)
			child := script(scripted.Step{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
				all.Done()
				all.Wait()
				return says("did " + req.Messages[0].Text()), nil
			}})
			e := newExtension(t, &subagent.Options{Delegate: true}, subagent.Subagent{Name: "child", Factory: subagent.Agent(child, nil)})
			agent := newAgent(t, script(test.step, tells("main")), &belay.Options{Store: memstore.New(nil), Extensions: []belay.Extension{e}})
			h := take(t, agent.Session("s").Run(t.Context(), "go"))
			h.ended(t, belay.EndTurn)
			at := -1
			for i := range n {
				next := strings.Index(h.end.Text, fmt.Sprintf("did %d", i+1))
				if next <= at {
					t.Errorf("the answers are not in the order of the calls: %s", h.end.Text)
				}
				at = next
			}
		})
	}
}
