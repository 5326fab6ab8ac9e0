package subagent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// left returns what is open in a store: sessions with an open turn, and pending
// approvals.
func left(t *testing.T, store belay.ListStore) []string {
	t.Helper()
	var open []string
	for s, err := range store.Sessions(t.Context(), belay.SessionFilter{Open: true}) {
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, "turn of "+s.ID)
	}
	for a, err := range store.Approvals(t.Context(), belay.ApprovalFilter{Pending: true}) {
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, "approval in "+a.Session)
	}
	return open
}

// SPEC S-10: abandoning a parked parent abandons its children, at any depth and also
// in another process.
func TestAbandoningAParentAbandonsItsChildren(t *testing.T) {
	t.Parallel()
	for _, durable := range []bool{false, true} {
		for _, depth := range []int{1, 3} {
			t.Run(fmt.Sprintf("durable %t, depth %d", durable, depth), func(t *testing.T) {
				t.Parallel()
				path := newFile(t)
				d := &deployer{depth: depth, durable: durable}
				store := openFile(t, path)
				agent := d.agent(t, store)
				take(t, agent.Session("s").Run(t.Context(), "go")).ended(t, belay.EndParked)
				if open := left(t, store); len(open) != depth+2 {
					t.Fatalf("open are %v, want a turn of each of the family and an approval", open)
				}
				if err := errors.Join(agent.Close(t.Context()), store.Close()); err != nil {
					t.Fatal(err)
				}
				store = openFile(t, path)
				agent = d.agent(t, store)
				var ended sync.Map
				if _, err := agent.Hooks().Install(belay.TurnPostTurn.On("audit", func(_ context.Context, e belay.TurnEnded) (belay.Note, error) {
					ended.Store(e.Session(), e.Reason())
					return belay.Note{}, nil
				}, nil)); err != nil {
					t.Fatal(err)
				}
				turn, err := agent.Session("s").Abandon(t.Context())
				if err != nil || turn.Reason != belay.EndAborted {
					t.Fatalf("abandon: %+v, %v", turn, err)
				}
				if open := left(t, store); len(open) > 0 {
					t.Errorf("still open are %v", open)
				}
				audited := 0
				ended.Range(func(_, reason any) bool {
					audited++
					return reason == belay.EndAborted
				})
				if audited != depth+1 {
					t.Errorf("the parent's hook saw %d turns end, want those of the family: %d", audited, depth+1)
				}
				if d.ran.Load() != 0 {
					t.Error("the tool ran")
				}
			})
		}
	}
}

// SPEC S-10: abandoning a turn abandons all parked tasks of a call of delegate. Watchers
// get a start event and an end event for each of these tasks.
func TestAbandoningDelegatedTasks(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		d := &deployer{}
		e := newExtension(t, &subagent.Options{Delegate: true}, d.subagent(), subagent.Subagent{Name: "quick", Factory: answers("done")})
		task := func(name string) map[string]string { return map[string]string{"name": name, "prompt": "x"} }
		agent := newAgent(t, script(calls(call("delegate", map[string]any{"tasks": []any{task("deployer"), task("quick"), task("deployer")}}))),
			&belay.Options{Store: store, Extensions: []belay.Extension{e}, Authorizer: asks, OnAsk: belay.AskPark})
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndParked)
		if len(h.end.Waits) != 2 {
			t.Fatalf("the turn waits for %d approvals, want 2", len(h.end.Waits))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		events := agent.Watch(ctx, nil)
		if _, err := agent.Session("s").Abandon(t.Context()); err != nil {
			t.Fatal(err)
		}
		if open := left(t, store.(belay.ListStore)); len(open) > 0 {
			t.Errorf("still open are %v", open)
		}
		told := new(heard)
		for event := range events {
			told.events = append(told.events, event)
			if event.End != nil && event.Depth == 0 {
				break
			}
		}
		told.paired(t)
		if want := "+deployer -deployer aborted +deployer -deployer aborted"; told.brackets() != want {
			t.Errorf("brackets = %s, want %s", told.brackets(), want)
		}
	})
}

// SPEC S-10: a parked child is abandoned even if the factory of the subagent fails now, or
// if the subagent no longer exists.
func TestAbandoningWithoutTheSubagent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule  string
		later []subagent.Subagent
	}{
		{"its factory fails", []subagent.Subagent{{Name: "deployer", Factory: func(context.Context, *subagent.Task) (subagent.Runner, error) { return nil, errors.New("no key") }}}},
		{"it is gone", nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			onStores(t, func(t *testing.T, store belay.Store) {
				d := &deployer{}
				family := func(subagents ...subagent.Subagent) *belay.Agent {
					return newAgent(t, script(calls(invoke("deployer", "x"))), &belay.Options{
						Store: store, Extensions: []belay.Extension{newExtension(t, nil, append(subagents, subagent.Subagent{Name: "other", Factory: answers("x")})...)}, Authorizer: asks, OnAsk: belay.AskPark,
					})
				}
				agent := family(d.subagent())
				take(t, agent.Session("s").Run(t.Context(), "go")).ended(t, belay.EndParked)
				if err := agent.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := family(test.later...).Session("s").Abandon(t.Context()); err != nil {
					t.Fatal(err)
				}
				if open := left(t, store.(belay.ListStore)); len(open) > 0 {
					t.Errorf("still open are %v", open)
				}
			})
		})
	}
}

// SPEC S-10: if the floor denies the call of a subagent when the turn is resumed, the
// parked child is abandoned.
func TestAParkedChildWhoseCallIsRefusedIsAbandoned(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		d := &deployer{}
		var strict sync.Map
		floor := authorizer(func(c belay.ToolCall) belay.Authorization {
			if _, on := strict.Load("on"); on {
				return belay.Authorization{Decision: belay.ToolDeny, Reason: "no subagents any more", By: "floor"}
			}
			if c.Tool() == "deploy" {
				return belay.Authorization{Decision: belay.ToolAsk, Reason: "it is production", By: "floor"}
			}
			return belay.Authorization{}
		})
		agent := newAgent(t, script(calls(invoke("deployer", "x")), tells("main")), &belay.Options{
			Store: store, Extensions: []belay.Extension{newExtension(t, nil, d.subagent())}, Authorizer: floor, OnAsk: belay.AskPark,
		})
		take(t, agent.Session("s").Run(t.Context(), "go")).ended(t, belay.EndParked)
		strict.Store("on", true)
		h := take(t, agent.Session("s").Resume(t.Context()))
		h.ended(t, belay.EndTurn)
		if !strings.Contains(h.end.Text, "no subagents any more") {
			t.Errorf("the main agent heard %s", h.end.Text)
		}
		if open := left(t, store.(belay.ListStore)); len(open) > 0 {
			t.Errorf("still open are %v", open)
		}
	})
}

// SPEC S-10: abandoning a task that never began does not create a session for it.
func TestAbandoningMakesNoSessions(t *testing.T) {
	t.Parallel()
	store := memstore.New(nil)
	d := &deployer{}
	asksFirst := authorizer(func(belay.ToolCall) belay.Authorization {
		return belay.Authorization{Decision: belay.ToolAsk, Reason: "every call", By: "floor"}
	})
	agent := newAgent(t, script(calls(invoke("deployer", "x"))), &belay.Options{
		Store: store, Extensions: []belay.Extension{newExtension(t, nil, d.subagent())}, Authorizer: asksFirst, OnAsk: belay.AskPark,
	})
	take(t, agent.Session("s").Run(t.Context(), "go")).ended(t, belay.EndParked)
	if _, err := agent.Session("s").Abandon(t.Context()); err != nil {
		t.Fatal(err)
	}
	for s, err := range store.Sessions(t.Context(), belay.SessionFilter{}) {
		if err != nil || s.ID != "s" {
			t.Errorf("there is a session %q (%v), want the parent's alone", s.ID, err)
		}
	}
}
