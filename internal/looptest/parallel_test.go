package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
)

// sleeper returns a tool that sleeps for the time in its input.
func sleeper(name string, d *diary, traits *belay.ToolTraits) belay.Tool {
	return anyTool(name, func(ctx context.Context, call *belay.Invocation) (belay.Result, error) {
		var in struct{ MS int }
		if err := call.Decode(&in); err != nil {
			return belay.Result{}, err
		}
		d.notef("%s begins", call.ID)
		select {
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
			d.notef("%s ends", call.ID)
			return belay.Result{Text: call.ID}, nil
		case <-ctx.Done():
			d.notef("%s is cancelled", call.ID)
			return belay.Result{}, context.Cause(ctx)
		}
	}, traits)
}

// sleeps returns a step with calls of sleepers. Each argument is a tool and milliseconds.
func sleeps(naps ...string) scripted.Step {
	var step scripted.Step
	for i, nap := range naps {
		tool, ms, _ := strings.Cut(nap, " ")
		step.Calls = append(step.Calls, scripted.Call{ID: fmt.Sprint(i), Tool: tool, Input: `{"ms":` + ms + `}`})
	}
	return step
}

// SPEC T-03
func TestCallsOfOneMessageRunConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		pre := belay.ToolPre.On("pre", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, nil)
		agent, _ := newAgent(t, &belay.Options{
			Tools: []belay.Tool{sleeper("nap", &d, nil)}, Hooks: []hook.Subscription{pre, postLog(new(diary))},
		}, sleeps("nap 50", "nap 50", "nap 50", "nap 50", "nap 50", "nap 50", "nap 50", "nap 50", "nap 50", "nap 50"))
		session := agent.Session("s")
		start := time.Now()
		takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("10 calls of 50 ms took %s", took)
		}
		if got := len(storedResults(t, session)); got != 10 {
			t.Errorf("there are %d results", got)
		}
	})
}

// Hooks for several calls overlap, like the tools: a slow gate for one call does not delay
// another call.
//
// SPEC T-03
func TestCallsOfOneMessageAreJudgedConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func() { <-time.After(50 * time.Millisecond) }
		pre := belay.ToolPre.On("pre", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
			slow()
			return belay.Pass, nil
		}, nil)
		post := belay.ToolPost.On("post", func(context.Context, belay.ToolResult) (belay.ToolReaction, error) {
			slow()
			return belay.ToolReaction{}, nil
		}, nil)
		agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{sleeper("nap", new(diary), nil)}, Hooks: []hook.Subscription{pre, post}},
			sleeps("nap 50", "nap 50", "nap 50", "nap 50"))
		start := time.Now()
		takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
		if took := time.Since(start); took != 150*time.Millisecond {
			t.Errorf("4 calls with 50 ms each before, in and after the tool took %s", took)
		}
	})
}

// SPEC T-03
func TestParallelCallsAreCapped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule        string
		limit, most int
	}{
		{"at 16", 0, 16}, {"at the limit that is set", 3, 3}, {"one at a time", 1, 1},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, most := 0, 0
				tool := anyTool("nap", func(context.Context, *belay.Invocation) (belay.Result, error) {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					<-time.After(time.Second)
					mu.Lock()
					now--
					mu.Unlock()
					return belay.Result{}, nil
				}, nil)
				agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tool}, Limits: belay.Limits{Parallel: test.limit}},
					scripted.Step{Calls: make40("nap")})
				start := time.Now()
				takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
				if most != test.most {
					t.Errorf("%d calls ran at a time, not %d", most, test.most)
				}
				rounds := (40 + test.most - 1) / test.most
				if took := time.Since(start); took != time.Duration(rounds)*time.Second {
					t.Errorf("40 calls of 1 s took %s", took)
				}
			})
		})
	}
}

func make40(tool string) []scripted.Call {
	all := make([]scripted.Call, 40)
	for i := range all {
		all[i] = scripted.Call{Tool: tool, Input: fmt.Sprintf(`{"n":%d}`, i)}
	}
	return all
}

// SPEC T-03
func TestSerialToolIsABarrier(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d diary
		agent, _ := newAgent(t, &belay.Options{
			Tools: []belay.Tool{sleeper("nap", &d, nil), sleeper("alone", &d, &belay.ToolTraits{Serial: true})},
		}, sleeps("nap 20", "nap 10", "alone 30", "alone 10", "nap 10", "nap 5"))
		session := agent.Session("s")
		all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndTurn)
		entries := d.all()
		// Two calls that begin at the same time can be in any order.
		for _, pair := range []int{0, 8} {
			if entries[pair] > entries[pair+1] {
				entries[pair], entries[pair+1] = entries[pair+1], entries[pair]
			}
		}
		want := []string{
			"0 begins", "1 begins", "1 ends", "0 ends",
			"2 begins", "2 ends",
			"3 begins", "3 ends",
			"4 begins", "5 begins", "5 ends", "4 ends",
		}
		if diff := cmp.Diff(want, entries); diff != "" {
			t.Errorf("the order (-want +got):\n%s", diff)
		}
		var told, stored []string
		for _, e := range all.of(belay.EventToolUseResult) {
			told = append(told, e.Call.ID)
		}
		for _, r := range storedResults(t, session) {
			stored = append(stored, r.Text)
		}
		if diff := cmp.Diff([]string{"1", "0", "2", "3", "5", "4"}, told); diff != "" {
			t.Errorf("result events are in the order of completion (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"0", "1", "2", "3", "4", "5"}, stored); diff != "" {
			t.Errorf("results are stored in the order of the calls (-want +got):\n%s", diff)
		}
	})
}

// The reminders of hooks are in the order of the calls, whichever call is done first.
//
// SPEC T-03
func TestWhatHooksSayOfParallelCallsIsInCallOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		post := belay.ToolPost.On("post", func(_ context.Context, r belay.ToolResult) (belay.ToolReaction, error) {
			return belay.ToolReaction{Aside: belay.Aside{Context: belay.Tell("about " + r.ID())}}, nil
		}, nil)
		agent, model := newAgent(t, &belay.Options{Tools: []belay.Tool{sleeper("nap", new(diary), nil)}, Hooks: []hook.Subscription{post}},
			sleeps("nap 30", "nap 10", "nap 20"))
		takeTurn(t, agent.Session("s").Run(t.Context(), "go"), belay.EndTurn)
		sent := model.Requests()[1].Messages
		var told []string
		for _, p := range sent[len(sent)-1].Parts {
			told = append(told, strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(p.Text, "<system-reminder>"), "</system-reminder>")))
		}
		if diff := cmp.Diff([]string{"about 0", "about 1", "about 2"}, told); diff != "" {
			t.Errorf("the reminders (-want +got):\n%s", diff)
		}
	})
}

// SPEC T-10
func TestAbortCancelsRunningTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d, post diary
		agent, model := newAgent(t, &belay.Options{
			Tools: []belay.Tool{
				sleeper("nap", &d, nil), sleeper("must", &d, &belay.ToolTraits{MustFinish: true}), sleeper("alone", &d, &belay.ToolTraits{Serial: true}),
			},
			Hooks: []hook.Subscription{postLog(&post)},
		}, sleeps("nap 10", "nap 5000", "must 300", "unknown 0", "alone 10", "nap 10"))
		session := agent.Session("s")
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the user pressed escape")
		time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
		start := time.Now()
		all := take(session.Run(ctx, "go"))
		if !errors.Is(all.err, why) || all.Reason != belay.EndAborted {
			t.Errorf("the turn ended %s: %v", all.Reason, all.err)
		}
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("the turn took %s: what must finish takes 300 ms", took)
		}
		var got []string
		for _, r := range storedResults(t, session) {
			got = append(got, r.Call+" "+string(r.Class))
		}
		if diff := cmp.Diff([]string{"0 ", "1 aborted", "2 ", "3 not_found", "4 aborted", "5 aborted"}, got); diff != "" {
			t.Errorf("the results (-want +got):\n%s", diff)
		}
		if told := len(all.of(belay.EventToolUseResult)); told != 6 {
			t.Errorf("%d result events were sent", told)
		}
		want := []string{"nap error=false class= after 10ms", "nap error=true class=aborted after 100ms", "must error=false class= after 300ms"}
		if diff := cmp.Diff(want, post.all()); diff != "" {
			t.Errorf("tool.post fires for what was started (-want +got):\n%s", diff)
		}
		for _, entry := range d.all() {
			if strings.HasPrefix(entry, "4 ") || strings.HasPrefix(entry, "5 ") {
				t.Errorf("a call was started after the abort: %s", entry)
			}
		}
		// The session can continue, because every call has a result.
		takeTurn(t, session.Run(t.Context(), "again"), belay.EndTurn)
		if model.Left() != 0 {
			t.Error("the model was not asked again")
		}
	})
}

// If a call finishes while the turn is aborted, its result is kept. The turn still ends as
// aborted.
//
// SPEC T-10, L-05
func TestWhatFinishesDuringAnAbortIsKept(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		tidy := anyTool("tidy", func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
			cancel()
			<-ctx.Done()
			return belay.Result{Text: "tidied up", Final: final}, nil
		}, nil)
		agent, _ := newAgent(t, &belay.Options{Tools: []belay.Tool{tidy}}, calls("tidy"))
		session := agent.Session("s")
		all := take(session.Run(ctx, "go"))
		if all.Reason != belay.EndAborted || !errors.Is(all.err, context.Canceled) {
			t.Errorf("the turn ended %s: %v", all.Reason, all.err)
		}
		if r := onlyResult(t, session); r.Text != "tidied up" || r.IsError {
			t.Errorf("the result is %+v", r)
		}
	}
}

// SPEC T-10
func TestAbortWhileCallsAreJudged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		opts func(abort func()) belay.Options
	}{
		{"while a gate judges", func(abort func()) belay.Options {
			return belay.Options{Hooks: []hook.Subscription{belay.ToolPre.On("gate", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
				abort()
				return belay.Pass, nil
			}, nil)}}
		}},
		{"while the floor judges", func(abort func()) belay.Options {
			return belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
				abort()
				return belay.Authorization{}, nil
			})}
		}},
		{"while the floor asks elsewhere", func(abort func()) belay.Options {
			return belay.Options{Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
				abort()
				return belay.Authorization{}, context.Canceled
			})}
		}},
		{"while the floor wants a person asked", func(abort func()) belay.Options {
			return belay.Options{
				Authorizer: floorFunc(func(belay.ToolCall) (belay.Authorization, error) {
					abort()
					return belay.Authorization{Decision: belay.ToolAsk, Reason: "sure?"}, nil
				}),
				Approver: approverFunc(func(context.Context, belay.Question) (belay.Decision, error) {
					return belay.Decision{Allow: true, By: "ann"}, nil
				}),
			}
		}},
		{"while an interceptor looks", func(abort func()) belay.Options {
			return belay.Options{Interceptors: []belay.Interceptor{{Name: "in", Tool: "*", Before: func(context.Context, *belay.Invocation) (belay.Interception, error) {
				abort()
				return belay.Interception{}, nil
			}}}}
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			opts := test.opts(cancel)
			opts.Tools = []belay.Tool{anyTool("any", func(context.Context, *belay.Invocation) (belay.Result, error) { panic("it must not run") }, nil)}
			agent, _ := newAgent(t, &opts, calls("any", "any", "any"))
			session := agent.Session("s")
			all := take(session.Run(ctx, "go"))
			if all.Reason != belay.EndAborted {
				t.Errorf("the turn ended %s: %v", all.Reason, all.err)
			}
			if asked := all.of(belay.EventApprovalRequested); len(asked) != 0 {
				t.Errorf("a person was asked %d times after the abort", len(asked))
			}
			for _, r := range storedResults(t, session) {
				if r.Class != belay.ClassAborted {
					t.Errorf("a result is %+v", r)
				}
			}
			takeTurn(t, session.Run(t.Context(), "again"), belay.EndTurn)
		})
	}
}

// A halt ends the turn: calls that have not started get an aborted result.
func TestHaltAbortsTheOtherCalls(t *testing.T) {
	t.Parallel()
	halt := belay.ToolPre.On("stop", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Halt("enough"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"bad"}}})
	ask := belay.ToolPre.On("ask", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
		return belay.Ask("sure?"), nil
	}, &hook.Options{Match: hook.Match{Tools: []string{"asks"}}})
	never := func(context.Context, *belay.Invocation) (belay.Result, error) { panic("it must not run") }
	agent, model := newAgent(t, &belay.Options{
		Tools: []belay.Tool{anyTool("fine", never, nil), anyTool("bad", never, nil), anyTool("asks", never, nil)},
		Hooks: []hook.Subscription{halt, ask}, OnAsk: belay.AskPark,
	}, calls("fine", "bad", "asks", "unknown"))
	session := agent.Session("s")
	all := takeTurn(t, session.Run(t.Context(), "go"), belay.EndBlocked)
	if all.By != "stop" || all.Why != "enough" || len(all.Waits) != 0 {
		t.Errorf("the turn was ended by %q: %q, and waits for %v", all.By, all.Why, all.Waits)
	}
	var got []string
	for _, r := range storedResults(t, session) {
		got = append(got, r.Tool+" "+string(r.Class))
	}
	if diff := cmp.Diff([]string{"fine aborted", "bad denied", "asks aborted", "unknown not_found"}, got); diff != "" {
		t.Errorf("the results (-want +got):\n%s", diff)
	}
	if len(model.Requests()) != 1 {
		t.Errorf("the model was asked %d times", len(model.Requests()))
	}
	takeTurn(t, session.Run(t.Context(), "again"), belay.EndTurn)
}
