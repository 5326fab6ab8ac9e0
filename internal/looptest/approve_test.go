package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
)

// everyCallAsks returns options of an agent that needs approval for every call. The tool
// act returns its input and notes its run in the diary.
func everyCallAsks(d *diary, mode belay.AskMode) *belay.Options {
	return &belay.Options{
		OnAsk: mode,
		Tools: []belay.Tool{anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			d.notef("ran %s", call.Input)
			return belay.Result{Text: string(call.Input)}, nil
		}, nil)},
		Hooks: []hook.Subscription{
			gateOf("gate", belay.Ask("it acts")),
			belay.ApprovalDecided.On("decided", func(_ context.Context, o belay.ApprovalOutcome) (belay.Note, error) {
				d.notef("%s by %s: %s", o.Decision(), o.By(), o.Reason())
				return belay.Note{}, nil
			}, nil),
		},
	}
}

// SPEC T-01
func TestApproverDecides(t *testing.T) {
	t.Parallel()
	type approve = func(ctx context.Context, q belay.Question) (belay.Decision, error)
	for _, test := range []struct {
		rule    string
		approve approve
		want    []string
	}{
		{"yes", func(_ context.Context, q belay.Question) (belay.Decision, error) {
			return belay.Decision{Approval: q.ID, Hash: q.Hash, Allow: true, By: "ann", Reason: "fine"}, nil
		}, []string{"allow by ann: fine", `ran {"n":1}`}},
		{"no", func(context.Context, belay.Question) (belay.Decision, error) {
			return belay.Decision{By: "ann", Reason: "no"}, nil
		}, []string{"deny by ann: no"}},
		{"nothing is no", func(context.Context, belay.Question) (belay.Decision, error) { return belay.Decision{}, nil }, []string{"deny by approver: "}},
		{"an error is no, whatever the answer", func(context.Context, belay.Question) (belay.Decision, error) {
			return belay.Decision{Allow: true, By: "ann"}, errors.New("the line is dead")
		}, []string{"deny by belay: asking the approver failed: the line is dead"}},
		{"a panic is no", func(context.Context, belay.Question) (belay.Decision, error) { panic("oh no") }, []string{"deny by belay: asking the approver failed: the approver panicked: oh no"}},
		{"yes to another input is no", func(_ context.Context, q belay.Question) (belay.Decision, error) {
			return belay.Decision{Approval: q.ID, Hash: "sha256:other", Allow: true, By: "ann"}, nil
		}, []string{"deny by belay: the approver's decision was for another call or input"}},
		{"yes to another question is no", func(_ context.Context, q belay.Question) (belay.Decision, error) {
			return belay.Decision{Approval: "ap-other", Hash: q.Hash, Allow: true, By: "ann"}, nil
		}, []string{"deny by belay: the approver's decision was for another call or input"}},
		{"yes after the expiry is no", func(context.Context, belay.Question) (belay.Decision, error) {
			<-time.After(25 * time.Hour)
			return belay.Decision{Allow: true, By: "ann"}, nil
		}, []string{"deny by expiry: nobody decided before the approval expired"}},
		{"an approver cannot change what it is asked about", func(_ context.Context, q belay.Question) (belay.Decision, error) {
			for i := range q.Input {
				q.Input[i] = 'x'
			}
			return belay.Decision{Allow: true, By: "ann"}, nil
		}, []string{"allow by ann: ", `ran {"n":1}`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diary
				opts := everyCallAsks(&d, "")
				opts.Approver = approverFunc(test.approve)
				agent, _ := newAgent(t, opts, callWith("act", `{"n":1}`))
				session := agent.Session("s")
				all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
				if diff := cmp.Diff(test.want, d.all()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				asked, decided := all.of(belay.EventApprovalRequested), all.of(belay.EventApprovalDecided)
				if len(asked) != 1 || len(decided) != 1 {
					t.Fatalf("there were events for %d questions and %d decisions", len(asked), len(decided))
				}
				q := decided[0].Approval
				if q.ID == "" || q.Session != "s" || q.Turn != all.ID || q.Call != "call_1" || q.Tool != "act" || q.Reason != "it acts" || q.By != "gate" ||
					!strings.HasPrefix(q.Hash, "sha256:") || q.Expires.Sub(q.Asked) != 24*time.Hour {
					t.Errorf("the approval is %+v", q)
				}
				onlyResult(t, session)
				<-time.After(48 * time.Hour) // let the approver that answers too late return, so that its goroutine ends
			})
		})
	}
}

// SPEC T-01, L-08
func TestAbortWhileSomebodyIsAsked(t *testing.T) {
	t.Parallel()
	var d diary
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts := everyCallAsks(&d, "")
	opts.Approver = approverFunc(func(ctx context.Context, _ belay.Question) (belay.Decision, error) {
		cancel()
		<-ctx.Done()
		return belay.Decision{Allow: true, By: "ann"}, nil
	})
	agent, _ := newAgent(t, opts, callWith("act", `{}`))
	session := agent.Session("s")
	all := take(session.Run(ctx, "go"))
	if all.Reason != belay.EndAborted {
		t.Errorf("the turn ended %s", all.Reason)
	}
	if told := all.of(belay.EventApprovalDecided); len(told) != 1 || told[0].Approval.Decided == nil || told[0].Approval.Decided.By != "cancel" {
		t.Errorf("the event of the decision is %+v", told)
	}
	if diff := cmp.Diff([]string{"deny by cancel: the turn was aborted before anybody decided"}, d.all()); diff != "" {
		t.Errorf("what happened (-want +got):\n%s", diff)
	}
	if r := onlyResult(t, session); !r.IsError {
		t.Errorf("the result is %+v", r)
	}
}

// SPEC T-01
func TestHooksCanAnswerInAPersonsPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule    string
		verdict belay.ApprovalVerdict
		err     error
		want    []string
	}{
		{"allow", belay.Allow("it is a test"), nil, []string{"allow by auto: it is a test", "ran {}"}},
		{"deny", belay.DenyApproval("never"), nil, []string{"deny by auto: never"}},
		{"pass leaves it to the person", belay.ApprovalVerdict{}, nil, []string{"asked", "allow by ann: ", "ran {}"}},
		{"a failure leaves it to the person", belay.ApprovalVerdict{}, errors.New("out of order"), []string{"asked", "allow by ann: ", "ran {}"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			opts := everyCallAsks(&d, "")
			opts.Approver = approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
				d.notef("asked")
				return belay.Decision{Allow: true, By: "ann"}, nil
			})
			opts.Hooks = append(opts.Hooks, belay.ApprovalRequest.On("auto", func(context.Context, belay.ApprovalAsked) (belay.ApprovalVerdict, error) {
				return test.verdict, test.err
			}, &hook.Options{Capabilities: hook.CanApprove}))
			agent, _ := newAgent(t, opts, calls("act"))
			takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
			if diff := cmp.Diff(test.want, d.all()); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}

// settleApproval decides an approval.
func settleApproval(t testing.TB, agent *belay.Agent, a belay.Approval, allow bool) {
	t.Helper()
	decided, err := agent.Decide(context.Background(), belay.Decision{Approval: a.ID, Hash: a.Hash, Allow: allow, By: "ann", Reason: "so"})
	if err != nil || decided.Decided == nil || decided.Decided.Allow != allow {
		t.Fatalf("decide %s: %+v, %v", a.ID, decided, err)
	}
}

// Agent.Decide sets the time of a decision itself, so that a client cannot date it back.
//
// SPEC P-08
func TestDecideSetsTheTime(t *testing.T) {
	t.Parallel()
	for name, store := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent, _ := newAgent(t, &belay.Options{
				Store: store(), OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("act")}, Hooks: []hook.Subscription{gateOf("gate", belay.Ask("sure?"))},
			}, calls("act"))
			asked := takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndParked).Waits[0].Approval
			before := time.Now()
			decided, err := agent.Decide(t.Context(), belay.Decision{Approval: asked.ID, Hash: asked.Hash, By: "ann", Time: before.Add(-time.Hour)})
			if err != nil || decided.Decided == nil {
				t.Fatalf("decide: %+v, %v", decided, err)
			}
			if got := decided.Decided.Time; got.Before(before) || got.After(time.Now()) {
				t.Errorf("the decision has the time %s, want the time at which Decide was called", got)
			}
		})
	}
}

// stores returns the stores with which parked turns are tested. A nil store means the
// agent's own memory.
func stores() map[string]func() belay.Store {
	return map[string]func() belay.Store{
		"in the store of the agent": func() belay.Store { return nil },
		"in a store":                func() belay.Store { return memstore.New(nil) },
	}
}

// SPEC T-01
func TestParkedCallIsDecidedAndResumed(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		for _, allow := range []bool{true, false} {
			t.Run(fmt.Sprintf("allow %t %s", allow, place), func(t *testing.T) {
				t.Parallel()
				var d diary
				opts := everyCallAsks(&d, belay.AskPark)
				opts.Store = store()
				agent, model := newAgent(t, opts, callWith("act", `{"n":1}`))
				session := agent.Session("s")
				parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
				if len(parked.Waits) != 1 || len(d.all()) != 0 || len(parked.of(belay.EventApprovalRequested)) != 1 {
					t.Fatalf("the turn waits for %v after %v", parked.Waits, d.all())
				}
				if _, err := session.Turn(t.Context(), "never mind"); !errors.Is(err, belay.ErrParked) {
					t.Errorf("another turn: %v", err)
				}
				again := takeTurn(t, session.Resume(t.Context()), belay.EndParked)
				if diff := cmp.Diff(parked.Waits[0].ID, again.Waits[0].ID); diff != "" {
					t.Errorf("resumed without a decision it waits for another (-want +got):\n%s", diff)
				}
				settleApproval(t, agent, parked.Waits[0].Approval, allow)
				takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
				want, class := []string{"allow by ann: so", `ran {"n":1}`}, belay.ResultClass("")
				if !allow {
					want, class = []string{"deny by ann: so"}, belay.ClassDenied
				}
				if diff := cmp.Diff(want, d.all()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				if r := onlyResult(t, session); r.Class != class {
					t.Errorf("the result is %+v", r)
				}
				if model.Left() != 0 {
					t.Error("the turn did not go on")
				}
				if _, err := belay.Await(session.Resume(t.Context())); !errors.Is(err, belay.ErrNoTurn) {
					t.Errorf("resumed once more: %v", err)
				}
			})
		}
	}
}

// SPEC T-01
func TestDecisionThatCannotStand(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diary
				opts := everyCallAsks(&d, belay.AskPark)
				opts.Store, opts.ApprovalExpiry = store(), time.Hour
				agent, _ := newAgent(t, opts, scripted.Step{Calls: []scripted.Call{{Tool: "act", Input: `{"n":1}`}, {Tool: "act", Input: `{"n":2}`}}})
				session := agent.Session("s")
				waits := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked).Waits
				good := belay.Decision{Approval: waits[0].ID, Hash: waits[0].Hash, Allow: true, By: "ann"}
				try := func(rule string, want error, change func(*belay.Decision)) {
					t.Helper()
					bad := good
					change(&bad)
					if _, err := agent.Decide(t.Context(), bad); !errors.Is(err, want) || err == nil {
						t.Errorf("%s: %v, not %v", rule, err, want)
					}
				}
				try("unknown", belay.ErrNotFound, func(d *belay.Decision) { d.Approval = "ap-nothing" })
				try("wrong hash", belay.ErrWrongHash, func(d *belay.Decision) { d.Hash = waits[1].Hash })
				try("no hash", belay.ErrWrongHash, func(d *belay.Decision) { d.Hash = "" })
				if _, err := agent.Decide(t.Context(), belay.Decision{Approval: good.Approval, Hash: good.Hash, Allow: true}); err == nil {
					t.Error("a decision without a name was taken")
				}
				settleApproval(t, agent, waits[0].Approval, false)
				try("twice", belay.ErrDecided, func(*belay.Decision) {})
				<-time.After(time.Hour)
				try("expired", belay.ErrExpired, func(d *belay.Decision) { d.Approval, d.Hash = waits[1].ID, waits[1].Hash })

				// When a turn is resumed, an expired approval is denied. The turn must not
				// wait forever.
				takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
				for i, want := range []string{`Denied by "ann": so`, `Denied by "expiry": nobody decided before the approval expired`} {
					if r := storedResults(t, session)[i]; !strings.HasPrefix(r.Text, want) || r.Class != belay.ClassDenied {
						t.Errorf("result %d is %+v", i, r)
					}
				}
				for _, entry := range d.all() {
					if strings.HasPrefix(entry, "ran") {
						t.Error(entry)
					}
				}
			})
		})
	}
}

// Each call of a message has its own approval. Anyone with the store can decide the
// approvals, in any order, and the turn may be resumed between decisions. Each approved
// call runs once, and the results are in the order of the calls.
//
// SPEC P-08, P-10, T-01
func TestParallelApprovalsInAnyOrder(t *testing.T) {
	t.Parallel()
	const many = 10
	rapid.Check(t, func(rt *rapid.T) {
		store := memstore.New(nil)
		ran := make([]atomic.Int64, many)
		opts := everyCallAsks(new(diary), belay.AskPark)
		opts.Store = store
		opts.Tools = []belay.Tool{anyTool("act", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
			var in struct {
				N int `json:"n"`
			}
			err := json.Unmarshal(call.Input, &in)
			ran[in.N].Add(1)
			return belay.Result{Text: string(call.Input)}, err
		}, &belay.ToolTraits{Serial: rapid.Bool().Draw(rt, "serial")})}
		var step scripted.Step
		for i := range many {
			step.Calls = append(step.Calls, scripted.Call{Tool: "act", Input: fmt.Sprintf(`{"n":%d}`, i)})
		}
		model := scripted.New([]scripted.Step{step, says("done")}, nil)
		agent := agentOf(t, model, opts)
		parked := take(agent.Session("s").Run(t.Context(), "go"))
		if parked.err != nil || len(parked.Waits) != many {
			rt.Fatalf("the turn waits for %d, %v", len(parked.Waits), parked.err)
		}
		allowed := make([]bool, many)
		told := 0
		for done, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(rt, "order") {
			allowed[i] = rapid.Bool().Draw(rt, "allow")
			settleApproval(t, agent, parked.Waits[i].Approval, allowed[i])
			last := done == many-1
			if !last && !rapid.Bool().Draw(rt, "resume") {
				continue
			}
			if rapid.Bool().Draw(rt, "elsewhere") {
				agent = agentOf(t, model, opts)
			}
			all := take(agent.Session("s").Resume(t.Context()))
			if all.err != nil || len(all.Waits) != many-1-done || (all.Reason == belay.EndTurn) != last {
				rt.Fatalf("after %d decisions the turn ends %s, waiting for %d, %v", done+1, all.Reason, len(all.Waits), all.err)
			}
			told += len(all.of(belay.EventToolUseResult))
		}
		if told != many {
			rt.Errorf("%d result events were sent, want %d", told, many)
		}
		for i, r := range storedResults(t, agent.Session("s")) {
			want := int64(0)
			if allowed[i] {
				want = 1
			}
			if got := ran[i].Load(); got != want || r.IsError == allowed[i] || allowed[i] && r.Text != fmt.Sprintf(`{"n":%d}`, i) {
				rt.Errorf("call %d ran %d times and has the result %+v, allowed: %t", i, got, r, allowed[i])
			}
		}
	})
}

// A model can use the same call id in each response. An approval of one call does not
// approve the next call with that id.
//
// SPEC T-01
func TestApprovalIsForOneCall(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			var d diary
			opts := everyCallAsks(&d, belay.AskPark)
			opts.Store = store()
			same := func(input string) scripted.Step {
				return scripted.Step{Calls: []scripted.Call{{ID: "same", Tool: "act", Input: input}}}
			}
			agent, _ := newAgent(t, opts, same(`{"n":1}`), same(`{"n":2}`), same(`{"n":1}`), same(`{"n":3}`))
			session := agent.Session("s")
			stream := session.Run(t.Context(), "go")
			for range 3 {
				parked := takeTurn(t, stream, belay.EndParked)
				before := d.all()
				takeTurn(t, session.Resume(t.Context()), belay.EndParked)
				if diff := cmp.Diff(before, d.all()); diff != "" {
					t.Fatalf("a call ran without a decision (-want +got):\n%s", diff)
				}
				settleApproval(t, agent, parked.Waits[0].Approval, true)
				stream = session.Resume(t.Context())
			}
			parked := takeTurn(t, stream, belay.EndParked)
			settleApproval(t, agent, parked.Waits[0].Approval, false)
			takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
			want := []string{
				"allow by ann: so", `ran {"n":1}`, "allow by ann: so", `ran {"n":2}`, "allow by ann: so", `ran {"n":1}`, "deny by ann: so",
			}
			if diff := cmp.Diff(want, d.all()); diff != "" {
				t.Errorf("what happened (-want +got):\n%s", diff)
			}
		})
	}
}

// The hash of an input depends only on its content, not on its formatting.
//
// SPEC T-01
func TestApprovalHashIsCanonical(t *testing.T) {
	t.Parallel()
	hashOf := func(input string) string {
		agent, _ := newAgent(t, everyCallAsks(new(diary), belay.AskPark), callWith("act", input))
		return takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndParked).Waits[0].Hash
	}
	one := hashOf(`{"a":1,"b":[1,2]}`)
	if other := hashOf("{ \"b\" : [1, 2],\n\"a\":1}"); other != one {
		t.Error("white space and the order of keys change the hash")
	}
	for _, input := range []string{`{"a":2,"b":[1,2]}`, `{"a":1,"b":[2,1]}`, `{"a":1.0,"b":[1,2]}`, `{"a":"1","b":[1,2]}`} {
		if hashOf(input) == one {
			t.Errorf("%s has the hash of another input", input)
		}
	}
}

// An approved call is stored as started before it runs. If the process ends during the
// call, the call runs again only if its tool is idempotent. Nobody is asked again.
//
// SPEC L-01, T-01
func TestApprovedCallThatIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule       string
		idempotent bool
		ran        int
		class      belay.ResultClass
	}{
		{"it is not run again", false, 1, belay.ClassAborted},
		{"an idempotent one is", true, 2, ""},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var d diary
			store := memstore.New(nil)
			opts := everyCallAsks(&d, belay.AskPark)
			opts.Tools = []belay.Tool{anyTool("act", func(context.Context, *belay.Invocation) (belay.Result, error) {
				d.notef("ran")
				return belay.Result{Text: "ok"}, nil
			}, &belay.ToolTraits{Idempotent: test.idempotent})}
			opts.Authorizer = floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
				return belay.Authorization{Decision: belay.ToolAsk, Reason: "it acts"}, nil
			})
			opts.Store = store
			first, _ := newAgent(t, opts, calls("act"))
			parked := takeTurn(t, first.Session("s").Run(t.Context(), "go"), belay.EndParked)
			settleApproval(t, first, parked.Waits[0].Approval, true)
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			opts.Store = &stoppedStore{Store: store, after: 1} // the store fails after the commit that records the call as started
			second, _ := newAgent(t, opts)
			if all := take(second.Session("s").Resume(t.Context())); all.Reason != belay.EndError {
				t.Fatalf("the turn ended %s", all.Reason)
			}
			opts.Store = store
			third, _ := newAgent(t, opts)
			session := third.Session("s")
			takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
			if r := onlyResult(t, session); r.Class != test.class {
				t.Errorf("the result is %+v", r)
			}
			ran := slices.DeleteFunc(d.all(), func(entry string) bool { return entry != "ran" })
			if len(ran) != test.ran {
				t.Errorf("it ran %d times, not %d", len(ran), test.ran)
			}
		})
	}
}

// A tool can park its own call.
//
// SPEC L-01
func TestToolParksItsCall(t *testing.T) {
	t.Parallel()
	for place, store := range stores() {
		for _, approved := range []bool{false, true} {
			t.Run(fmt.Sprintf("approved %t %s", approved, place), func(t *testing.T) {
				t.Parallel()
				var d diary
				tool := anyTool("wait", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
					d.notef("called with %s for %q", call.Input, call.Wait)
					if call.Wait == "" {
						return belay.Result{}, fmt.Errorf("not yet: %w", belay.Park("the mail"))
					}
					return belay.Result{Text: "it came"}, nil
				}, nil)
				opts := &belay.Options{Tools: []belay.Tool{tool, echoTool("echo")}, Store: store(), Hooks: []hook.Subscription{rewriterOf("rewriter", `{"final":true}`)}}
				if approved {
					opts.OnAsk = belay.AskPark
					opts.Authorizer = floorFunc(func(call belay.ToolCall) (belay.Authorization, error) {
						if call.Tool() == "wait" {
							return belay.Authorization{Decision: belay.ToolAsk, Reason: "it waits"}, nil
						}
						return belay.Authorization{}, nil
					})
				}
				agent, _ := newAgent(t, opts, calls("wait", "echo"))
				session := agent.Session("s")
				parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
				if approved {
					settleApproval(t, agent, parked.Waits[0].Approval, true)
					parked = takeTurn(t, session.Resume(t.Context()), belay.EndParked)
				}
				if len(parked.Waits) != 1 || parked.Waits[0].ID != "" || parked.Waits[0].Wait != "the mail" {
					t.Errorf("the turn waits for %v, want the mail and no approval", parked.Waits)
				}
				takeTurn(t, session.Resume(t.Context()), belay.EndTurn)
				want := []string{`called with {"final":true} for ""`, `called with {"final":true} for "the mail"`}
				if diff := cmp.Diff(want, d.all()); diff != "" {
					t.Errorf("what happened (-want +got):\n%s", diff)
				}
				results := storedResults(t, session)
				if results[0].Text != "it came" || results[1].Text != `{"final":true}` {
					t.Errorf("the results are %+v", results)
				}
			})
		}
	}
}

// SPEC T-01
func TestAbandonedTurnDoesNotRunWhatItAsked(t *testing.T) {
	t.Parallel()
	var d diary
	agent, _ := newAgent(t, everyCallAsks(&d, belay.AskPark), calls("act"))
	session := agent.Session("s")
	parked := takeTurn(t, session.Run(t.Context(), "go"), belay.EndParked)
	settleApproval(t, agent, parked.Waits[0].Approval, true)
	if turn, err := session.Abandon(t.Context()); err != nil || turn.Reason != belay.EndAborted {
		t.Errorf("abandoned: %+v, %v", turn, err)
	}
	if r := onlyResult(t, session); r.Class != belay.ClassAborted {
		t.Errorf("the result is %+v", r)
	}
	takeTurn(t, session.Run(t.Context(), "again"), belay.EndTurn)
	if len(d.all()) != 0 {
		t.Errorf("something happened: %v", d.all())
	}
}

// SPEC L-01, P-09: an approval answers only the question that was asked. If the floor asks
// another question when the turn is resumed, a new approval is needed.
func TestResumedCallsAreAskedAboutAnew(t *testing.T) {
	t.Parallel()
	now := belay.Authorization{Decision: belay.ToolAsk, Reason: "it fetches", By: "zone 3"}
	ran := 0
	agent, _ := newAgent(t, &belay.Options{
		OnAsk: belay.AskPark,
		Tools: []belay.Tool{anyTool("act", func(context.Context, *belay.Invocation) (belay.Result, error) {
			ran++
			return belay.Result{Text: "x"}, nil
		}, nil)},
		Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) { return now, nil }),
	}, calls("act"))
	s := agent.Session("s")
	parked := takeTurn(t, s.Run(t.Context(), "go"), belay.EndParked)
	settleApproval(t, agent, parked.Waits[0].Approval, true)
	now = belay.Authorization{Decision: belay.ToolAsk, Reason: "it leaves the project", By: "protection shell.outside, zone 5"}
	again := takeTurn(t, s.Resume(t.Context()), belay.EndParked)
	if ran != 0 || len(again.Waits) != 1 || again.Waits[0].By != now.By || again.Waits[0].ID == parked.Waits[0].ID {
		t.Fatalf("the tool ran %d times, and the turn waits for %+v", ran, again.Waits)
	}
	settleApproval(t, agent, again.Waits[0].Approval, true)
	takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
	if ran != 1 {
		t.Errorf("the tool ran %d times", ran)
	}
}
