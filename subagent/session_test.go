package subagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// counts returns a step that reports how many user messages the model got.
func counts() scripted.Step {
	return scripted.Step{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
		var asked []string
		for _, m := range req.Messages {
			if m.Role == belay.RoleUser {
				asked = append(asked, m.Text())
			}
		}
		return says(strings.Join(asked, ", ")), nil
	}}
}

// SPEC S-06
func TestChildSessions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		durable bool
		want    []string
	}{
		{"fresh for each call", false, []string{"one", "two", "three"}},
		{"durable for each parent", true, []string{"one", "one, two", "one, two, three"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, store belay.Store) {
				child := subagent.Subagent{Name: "child", Factory: subagent.Agent(script(counts(), counts(), counts()), nil), Durable: test.durable}
				family := func() *belay.Agent {
					return parentOf(t, script(calls(invoke("child", "one")), calls(invoke("child", "two")), says("a"), calls(invoke("child", "three")), says("b")), store, child)
				}
				agent := family()
				first := take(t, agent.Session("s").Run(t.Context(), "go"))
				if err := agent.Session("s").Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				second := take(t, family().Session("s").Run(t.Context(), "go on")) // in another agent
				var got []string
				for _, r := range append(first.results(), second.results()...) {
					got = append(got, content(t, r))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("the child was asked (-want +got):\n%s", diff)
				}
				other := take(t, family().Session("other").Run(t.Context(), "go"))
				if got := content(t, other.results()[0]); got != "one" {
					t.Errorf("the child of another parent was asked %q, want one alone", got)
				}
			})
		})
	}
}

// SPEC S-06
func TestCallsOfADurableChildQueue(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		const n = 5
		var inside, most atomic.Int32
		steps := make([]scripted.Step, n)
		for i := range steps {
			steps[i] = scripted.Step{Compute: func(ctx context.Context, req *belay.Request) (scripted.Step, error) {
				if now := inside.Add(1); now > most.Load() {
					most.Store(now)
				}
				defer inside.Add(-1)
				return counts().Compute(ctx, req)
			}}
		}
		var all []scripted.Call
		for i := range n {
			all = append(all, invoke("child", fmt.Sprint(i)))
		}
		agent := parentOf(t, script(calls(all...), says("done")), store, subagent.Subagent{Name: "child", Factory: subagent.Agent(script(steps...), nil), Durable: true})
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndTurn)
		asked := 0
		for _, r := range h.results() {
			asked = max(asked, len(strings.Split(content(t, r), ", ")))
		}
		if most.Load() != 1 || asked != n {
			t.Errorf("%d at a time, and the last one was asked %d times: want one after the other, and %d", most.Load(), asked, n)
		}
	})
}

// SPEC S-06: if a task of a durable child waits for an earlier task, and the turn is
// aborted, the task does not start.
func TestAQueuedCallHeedsItsTimeout(t *testing.T) {
	t.Parallel()
	ctx, abort := context.WithCancel(t.Context())
	defer abort()
	var asked atomic.Int32
	child := subagent.Canned(func(ctx context.Context, _ string) (string, error) {
		asked.Add(1)
		abort()
		<-ctx.Done()
		return "", ctx.Err()
	})
	agent := parentOf(t, script(calls(invoke("child", "1"), invoke("child", "2"))), memstore.New(nil), subagent.Subagent{Name: "child", Factory: child, Durable: true})
	h := take(t, agent.Session("s").Run(ctx, "go"))
	h.ended(t, belay.EndAborted)
	if asked.Load() != 1 {
		t.Errorf("the child was asked %d times, want once", asked.Load())
	}
}

// SPEC S-06: if another process holds the session of a durable child, the call gets an
// error result. A later call works when the session is free again.
func TestADurableChildThatIsHeldElsewhere(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		stored, err := store.Open(t.Context(), "s/child")
		if err != nil {
			t.Fatal(err)
		}
		agent := parentOf(t, script(calls(invoke("child", "x")), says("later"), calls(invoke("child", "x")), says("done")), store,
			subagent.Subagent{Name: "child", Factory: subagent.Agent(script(says("here")), nil), Durable: true})
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndTurn)
		if r := h.results()[0]; !r.IsError || !strings.Contains(r.Text, "in use") {
			t.Errorf("the result is %+v, want that the session is held", r)
		}
		if err := store.Release(t.Context(), "s/child", stored.Epoch); err != nil {
			t.Fatal(err)
		}
		if got := content(t, take(t, agent.Session("s").Run(t.Context(), "again")).results()[0]); got != "here" {
			t.Errorf("content = %q when it is free again", got)
		}
	})
}

// deployer is a chain of agents in which the last child wants to deploy. This needs
// approval.
type deployer struct {
	ran     atomic.Int32
	depth   int
	durable bool
}

// asks is a floor (permission check) that asks for approval of deploy.
var asks = authorizer(func(call belay.ToolCall) belay.Authorization {
	if call.Tool() == "deploy" {
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "it is production", By: "zone"}
	}
	return belay.Authorization{}
})

// subagent returns the child that deploys.
func (d *deployer) subagent() subagent.Subagent {
	deploy := belay.NewTool("deploy", "deploys", func(context.Context, struct{}) (string, error) {
		return fmt.Sprintf("deployed %d", d.ran.Add(1)), nil
	}, nil)
	return subagent.Subagent{
		Name: "deployer", Durable: d.durable,
		Factory: subagent.Agent(script(calls(call("deploy", nil)), tells("child")), &belay.Options{Tools: []belay.Tool{deploy}}),
	}
}

func (d *deployer) agent(t *testing.T, store belay.Store) *belay.Agent {
	t.Helper()
	return chain(t, store, d.depth, d.subagent(), &belay.Options{Authorizer: asks, OnAsk: belay.AskPark})
}

// allow approves all questions that a turn waits for.
func allow(t *testing.T, agent *belay.Agent, h *heard) {
	t.Helper()
	for _, q := range h.end.Waits {
		if _, err := agent.Decide(t.Context(), belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
}

// SPEC S-10, S-04
func TestAParkedChildParksItsParents(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		for _, depth := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("depth %d, durable %t", depth, durable), func(t *testing.T) {
				t.Parallel()
				path := newFile(t)
				d := &deployer{depth: depth, durable: durable}
				store := openFile(t, path)
				agent := d.agent(t, store)
				h := take(t, agent.Session("s").Run(t.Context(), "go"))
				h.ended(t, belay.EndParked)
				if len(h.end.Waits) != 1 || h.end.Waits[0].Tool != "deploy" || h.end.Waits[0].Depth != depth || h.end.Waits[0].Agent != level(depth) || h.end.Waits[0].Reason != "it is production" {
					t.Fatalf("the turn waits for %+v, want the deepest child's approval", h.end.Waits)
				}
				if !strings.HasSuffix(h.brackets(), fmt.Sprintf("-%s parked", level(1))) || strings.Count(h.brackets(), "parked") != depth {
					t.Errorf("brackets = %s, want all parked", h.brackets())
				}
				// Without a decision, the turn parks again.
				again := take(t, agent.Session("s").Resume(t.Context()))
				again.ended(t, belay.EndParked)
				if len(again.end.Waits) != 1 || again.end.Waits[0].ID != h.end.Waits[0].ID {
					t.Fatalf("resumed, the turn waits for %+v", again.end.Waits)
				}
				// The process ends, and another process continues.
				if err := errors.Join(agent.Close(t.Context()), store.Close()); err != nil {
					t.Fatal(err)
				}
				agent = d.agent(t, openFile(t, path))
				allow(t, agent, h)
				h = take(t, agent.Session("s").Resume(t.Context()))
				h.ended(t, belay.EndTurn)
				if d.ran.Load() != 1 || !strings.Contains(h.end.Text, "deployed 1") {
					t.Errorf("the tool ran %d times, and the main agent heard %s", d.ran.Load(), h.end.Text)
				}
				if strings.Count(h.brackets(), "success") != depth {
					t.Errorf("brackets = %s, want all to succeed", h.brackets())
				}
				take(t, agent.Session("s2").Run(t.Context(), "go")).ended(t, belay.EndParked) // the agent is still usable
			})
		}
	}
}

// SPEC S-10: if an approval for a child's call is denied, the call does not run, and the
// main agent gets the reason.
func TestADeniedChildGoesOn(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		d := &deployer{depth: 2}
		agent := d.agent(t, store)
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndParked)
		q := h.end.Waits[0]
		if _, err := agent.Decide(t.Context(), belay.Decision{Approval: q.ID, Hash: q.Hash, By: "ann", Reason: "not on a Friday"}); err != nil {
			t.Fatal(err)
		}
		h = take(t, agent.Session("s").Resume(t.Context()))
		h.ended(t, belay.EndTurn)
		if d.ran.Load() != 0 || !strings.Contains(h.end.Text, "not on a Friday") {
			t.Errorf("the tool ran %d times, and the main agent heard %s", d.ran.Load(), h.end.Text)
		}
	})
}

// SPEC S-10: if another process resumes and finishes the child alone, the parent uses that
// result and does not run the child again.
func TestAChildThatWasFinishedElsewhereIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		d := &deployer{depth: 1}
		agent := d.agent(t, store)
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		q := h.end.Waits[0]
		allow(t, agent, h)
		deploy := belay.NewTool("deploy", "deploys", func(context.Context, struct{}) (string, error) { return "deployed elsewhere", nil }, nil)
		elsewhere := newAgent(t, script(calls(call("deploy", nil)), tells("child")), &belay.Options{Store: store, Tools: []belay.Tool{deploy}})
		if turn, err := belay.Await(elsewhere.Session(q.Session).Resume(t.Context())); err != nil || turn.Reason != belay.EndTurn {
			t.Fatalf("the child alone: %+v, %v", turn, err)
		}
		if err := elsewhere.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		h = take(t, agent.Session("s").Resume(t.Context()))
		h.ended(t, belay.EndTurn)
		if d.ran.Load() != 0 || !strings.Contains(h.end.Text, "deployed elsewhere") {
			t.Errorf("the tool ran %d times more, and the main agent heard %s", d.ran.Load(), h.end.Text)
		}
	})
}

// SPEC S-10: an isolated child asks the approver of its own agent. Any other child asks the
// approver of its parent.
func TestAnIsolatedChildAsksItsOwn(t *testing.T) {
	t.Parallel()
	for _, isolated := range []bool{true, false} {
		t.Run(fmt.Sprintf("isolated %t", isolated), func(t *testing.T) {
			t.Parallel()
			var own, parents []belay.Question
			childs := approves(func(q belay.Question) bool { own = append(own, q); return true })
			mains := approves(func(q belay.Question) bool { parents = append(parents, q); return true })
			deploy := belay.NewTool("deploy", "deploys", func(context.Context, struct{}) (string, error) { return "deployed", nil }, nil)
			child := subagent.Agent(script(calls(call("deploy", nil)), tells("child")), &belay.Options{Tools: []belay.Tool{deploy}, Authorizer: asks, Approver: childs})
			e := newExtension(t, nil, subagent.Subagent{Name: "child", Factory: child, Isolated: isolated})
			opts := &belay.Options{Store: memstore.New(nil), Extensions: []belay.Extension{e}, Approver: mains}
			h := take(t, newAgent(t, script(calls(invoke("child", "x")), tells("main")), opts).Session("s").Run(t.Context(), "go"))
			h.ended(t, belay.EndTurn)
			if !strings.Contains(h.end.Text, "deployed") {
				t.Errorf("the main agent heard %s", h.end.Text)
			}
			asked, spared := parents, own
			if isolated {
				asked, spared = own, parents
			}
			if len(spared) > 0 {
				t.Errorf("the wrong approver was asked: %+v", spared)
			}
			if len(asked) != 1 || asked[0].Agent != "child" || asked[0].Depth != 1 || asked[0].Run == "" {
				t.Errorf("asked was %+v, want one question, tagged with the child", asked)
			}
		})
	}
}

type approves func(q belay.Question) bool

func (a approves) Approve(_ context.Context, q belay.Question) (belay.Decision, error) {
	return belay.Decision{Allow: a(q), By: "ann"}, nil
}

// SPEC S-06, S-10: while a task of a durable child is parked, a second call gets an error,
// and the parked task can still be resumed.
func TestADurableChildThatWaitsIsNotDisturbed(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		d := &deployer{durable: true}
		agent := newAgent(t, script(calls(invoke("deployer", "one"), invoke("deployer", "two")), tells("main")),
			&belay.Options{Store: store, Extensions: []belay.Extension{newExtension(t, nil, d.subagent())}, Authorizer: asks, OnAsk: belay.AskPark})
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndParked)
		if len(h.end.Waits) != 1 {
			t.Fatalf("the turn waits for %d approvals, want that of the first task", len(h.end.Waits))
		}
		allow(t, agent, h)
		h = take(t, agent.Session("s").Resume(t.Context()))
		h.ended(t, belay.EndTurn)
		if d.ran.Load() != 1 || !strings.Contains(h.end.Text, "deployed 1") || !strings.Contains(h.end.Text, "an earlier task of this subagent waits for a person") {
			t.Errorf("the tool ran %d times, and the main agent heard %s", d.ran.Load(), h.end.Text)
		}
	})
}

// SPEC S-06: a parked task that was abandoned does not block later tasks of its durable
// child.
func TestADurableChildOutlivesATaskThatWasGivenUp(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		d := &deployer{depth: 1, durable: true}
		agent := d.agent(t, store)
		take(t, agent.Session("s").Run(t.Context(), "go")).ended(t, belay.EndParked)
		if _, err := agent.Session("s").Abandon(t.Context()); err != nil {
			t.Fatal(err)
		}
		later := parentOf(t, script(says("-"), says("-"), calls(invoke(level(1), "again")), tells("main")), store,
			subagent.Subagent{Name: level(1), Durable: true, Factory: subagent.Agent(script(says("-"), counts()), nil)})
		if err := agent.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		take(t, later.Session("s").Run(t.Context(), "first")).ended(t, belay.EndTurn)
		h := take(t, later.Session("s").Run(t.Context(), "then"))
		h.ended(t, belay.EndTurn)
		if len(h.results()) != 1 || h.results()[0].IsError || !strings.Contains(content(t, h.results()[0]), "again") {
			t.Errorf("the child was asked again: %+v", h.results())
		}
	})
}

// SPEC S-09, S-10
func TestDelegate(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		var mu sync.Mutex
		asked := map[string]int{}
		counted := subagent.Canned(func(_ context.Context, prompt string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked[prompt]++; prompt == "fail" {
				return "", errors.New("it cannot be done")
			}
			return fmt.Sprintf("did %s %d", prompt, asked[prompt]), nil
		})
		d := new(deployer)
		family := func() *belay.Agent {
			e := newExtension(t, &subagent.Options{Delegate: true, Parallel: 2},
				subagent.Subagent{Name: "counted", Factory: counted}, d.subagent())
			tasks := `{"tasks":[{"name":"counted","prompt":"one"},{"name":"deployer","prompt":"x"},{"name":"counted","prompt":"fail"},{"name":"nobody","prompt":"x"},{"name":"counted","prompt":"two"}]}`
			return newAgent(t, script(calls(call("delegate", tasks)), tells("main")), &belay.Options{Store: store, Extensions: []belay.Extension{e}, Authorizer: asks, OnAsk: belay.AskPark})
		}
		agent := family()
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndParked)
		allow(t, agent, h)
		if err := agent.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		h = take(t, family().Session("s").Resume(t.Context()))
		h.ended(t, belay.EndTurn)
		want := `[{"subagent":"counted","content":"did one 1"},{"subagent":"deployer","content":"child heard deployed 1"},` +
			`{"subagent":"counted","error":"subagent \"counted\": it cannot be done","class":"failed"},` +
			`{"subagent":"nobody","error":"there is no subagent \"nobody\": available are counted, deployer","class":"not_found"},{"subagent":"counted","content":"did two 1"}]`
		if diff := cmp.Diff(want, h.results()[0].Text); diff != "" || h.results()[0].IsError {
			t.Errorf("the answers (-want +got), an error: %t:\n%s", h.results()[0].IsError, diff)
		}
		if diff := cmp.Diff(map[string]int{"one": 1, "two": 1, "fail": 1}, asked); diff != "" || d.ran.Load() != 1 {
			t.Errorf("what was done is not done again: deployed %d times, asked (-want +got):\n%s", d.ran.Load(), diff)
		}
	})
}
