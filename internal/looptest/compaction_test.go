package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/provider/scripted"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/store/storetest"
)

// counted returns a step that ends the turn and reports the given usage.
func counted(text string, usage belay.Usage) scripted.Step {
	return scripted.Step{Text: text, Usage: usage}
}

const summed = "compaction: Summary of the conversation so far:\n\n"

// SPEC L-06.
func TestCompactionByWindow(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		usage   belay.Usage
		options belay.Compaction
		want    bool
	}{
		"below the share nothing happens":          {belay.Usage{In: 700, Out: 99}, belay.Compaction{}, false},
		"at the share it is summarized":            {belay.Usage{In: 700, Out: 100}, belay.Compaction{}, true},
		"tokens from a cache are tokens":           {belay.Usage{In: 1, Out: 1, CacheRead: 700, CacheWrite: 98}, belay.Compaction{}, true},
		"the share is a setting":                   {belay.Usage{In: 500}, belay.Compaction{Share: 0.5}, true},
		"the window is a setting":                  {belay.Usage{In: 799}, belay.Compaction{Window: 900}, true},
		"a larger window is too":                   {belay.Usage{In: 900}, belay.Compaction{Window: 2000}, false},
		"a share of one leaves it to the provider": {belay.Usage{In: 999}, belay.Compaction{Share: 1}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := scripted.New([]scripted.Step{counted("one", test.usage), says("two"), says("three")}, &scripted.Options{Window: 1000, Pace: atOnce})
			s := agentOf(t, model, &belay.Options{Compaction: test.options}).Session("s")
			say(t, s, "a")
			say(t, s, "b")
			if !test.want {
				wantOutline(t, transcript(t, s), "user: a", "assistant: one", "user: b", "assistant: two")
				return
			}
			wantOutline(t, transcript(t, s), "user: a", "assistant: one", "user: b", summed+"two", "assistant: three")
			wantOutline(t, seen(t, model), summed+"two", "user: b")
		})
	}
}

// SPEC L-06.
func TestCompactionIsMarkedAndKeepsTheTranscript(t *testing.T) {
	t.Parallel()
	model := scriptOf(says("one"), says("the gist"), says("two"), says("the second gist"), says("three"))
	store := memstore.New(nil)
	s := agentOf(t, model, &belay.Options{Store: store}).Session("s")
	say(t, s, "a")
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := transcript(t, s)
	wantOutline(t, all, "user: a", "assistant: one", summed+"the gist")
	if m := all[2]; !m.IsCompaction || m.Kind != belay.KindCompaction || m.Role != belay.RoleUser || m.Keep != 0 || m.Usage == nil || m.Model == "" {
		t.Errorf("the summary is %+v", m)
	}
	say(t, s, "b")
	wantOutline(t, seen(t, model), summed+"the gist", "user: b")
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.Expire("s")
	s = agentOf(t, model, &belay.Options{Store: store}).Session("s")
	say(t, s, "c")
	wantOutline(t, seen(t, model), summed+"the second gist", "user: c")
	wantOutline(t, transcript(t, s), "user: a", "assistant: one", summed+"the gist", "user: b", "assistant: two", summed+"the second gist",
		"user: c", "assistant: three")
}

// SPEC L-06.
func TestCompactionInstructions(t *testing.T) {
	t.Parallel()
	advice := belay.TurnPreCompaction.On("advice", func(_ context.Context, c belay.CompactionAhead) (belay.CompactionAdvice, error) {
		return belay.CompactionAdvice{Instructions: belay.Tell("Keep the names: " + c.Trigger())}, nil
	}, nil)
	model := scriptOf(says("one"))
	writer := scripted.New([]scripted.Step{says("the gist")}, &scripted.Options{Name: "scripted/writer"})
	s := agentOf(t, model, &belay.Options{
		Hooks: []hook.Subscription{advice}, Compaction: belay.Compaction{Instructions: "Be short.", Model: writer},
	}).Session("s")
	say(t, s, "a")
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantOutline(t, seen(t, writer), "user: a", "assistant: one", "user: Be short.\n\nKeep the names: forced")
	if m := last(t, transcript(t, s)); m.Model != "scripted/writer" {
		t.Errorf("the summary is by %q", m.Model)
	}

	plain := scriptOf(says("one"), says("the gist"))
	s = agentOf(t, plain, nil).Session("s")
	say(t, s, "a")
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := last(t, seen(t, plain)).Text(); !strings.Contains(text, "Summarize this conversation") {
		t.Errorf("by default it is asked: %q", text)
	}
	requests := plain.Requests()
	requests[0].Messages = requests[0].Messages[:1]
	wantExtends(t, requests) // the provider can use its cache for the request for a summary
}

// SPEC L-06, L-04: if a request is too long, the conversation is summarized and the request
// is sent again, but only once.
func TestCompactionWhenTooLong(t *testing.T) {
	t.Parallel()
	tooLong := scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelTooLong, Status: 400}}
	t.Run("the attempt is made again with the summary", func(t *testing.T) {
		t.Parallel()
		model := scriptOf(says("one"), tooLong, says("the gist"), says("two"))
		s := agentOf(t, model, nil).Session("s")
		say(t, s, "a")
		say(t, s, "b")
		requests := model.Requests()
		if text := last(t, requests[2].Messages).Text(); len(requests[2].Messages) != 1 || !strings.Contains(text, "user: a\n\nassistant: one\n\nuser: b") {
			t.Errorf("the summary was asked of %q", text) // the request must have a shortened text, because the messages themselves are too long
		}
		wantOutline(t, requests[3].Messages, summed+"the gist", "user: b")
	})
	t.Run("a second time is an error", func(t *testing.T) {
		t.Parallel()
		model := scriptOf(says("one"), tooLong, says("the gist"), tooLong, says("never asked"), says("never asked"))
		s := agentOf(t, model, nil).Session("s")
		say(t, s, "a")
		turn, err := s.Turn(t.Context(), "b")
		failure, ok := errors.AsType[*belay.ModelError](err)
		if !ok || failure.Kind != belay.ModelTooLong || turn.Reason != belay.EndError {
			t.Errorf("the turn ended %s: %v", turn.Reason, err)
		}
		if model.Left() != 2 {
			t.Errorf("%d steps are left, want the two that come too late", model.Left())
		}
	})
	t.Run("a summary that fails leaves the first error", func(t *testing.T) {
		t.Parallel()
		model := scriptOf(says("one"), tooLong, scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelAuth}})
		s := agentOf(t, model, nil).Session("s")
		say(t, s, "a")
		_, err := s.Turn(t.Context(), "b")
		failure, ok := errors.AsType[*belay.ModelError](err)
		if !ok || failure.Kind != belay.ModelTooLong || !strings.Contains(err.Error(), "compaction:") {
			t.Errorf("the turn ended with %v", err)
		}
		wantOutline(t, transcript(t, s), "user: a", "assistant: one", "user: b")
	})
	t.Run("results that are too long themselves are summarized", func(t *testing.T) {
		t.Parallel()
		big := anyTool("big", func(context.Context, *belay.Invocation) (belay.Result, error) {
			return belay.Result{Text: strings.Repeat("x", 8000)}, nil
		}, nil)
		model := scripted.New([]scripted.Step{calls("big"), says("the gist"), says("two")}, &scripted.Options{Window: 1500, Pace: atOnce})
		s := agentOf(t, model, &belay.Options{Tools: []belay.Tool{big}, Compaction: belay.Compaction{Share: 1}}).Session("s")
		say(t, s, "do it")
		wantOutline(t, seen(t, model), summed+"the gist\n\nThe user's current request, word for word:\n\ndo it")
	})
}

// SPEC L-06.
func TestCompactionKeepsWhatIsOpen(t *testing.T) {
	t.Parallel()
	full := belay.Usage{In: 900}
	tests := map[string]struct {
		steps []scripted.Step
		want  []string // the messages of the last request
		keep  int64
	}{
		"what the user just said": {
			[]scripted.Step{counted("one", full), says("the gist"), says("two")},
			[]string{summed + "the gist", "user: b", "context: <context from=\"ctx\">\nc\n</context>"},
			4,
		},
		"calls with their results, in the middle of a turn": {
			[]scripted.Step{says("one"), {Calls: []scripted.Call{{Tool: "echo"}}, Usage: full}, says("the gist"), says("two")},
			[]string{summed + "the gist", "assistant: call echo", "results: result {}"},
			6,
		},
		"the last calls of several": {
			[]scripted.Step{
				says("one"), callWith("echo", `{"n":1}`),
				{Calls: []scripted.Call{{Tool: "echo", Input: `{"n":2}`}}, Usage: full},
				says("the gist"), says("two"),
			},
			[]string{summed + "the gist", "assistant: call echo", `results: result {"n":2}`},
			8,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := belay.TurnPrePromptContext.On("ctx", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
				return belay.PromptContext{Entries: []belay.ContextEntry{{Text: "c"}}}, nil
			}, nil)
			store := memstore.New(nil)
			model := scriptOf(append(test.steps, says("three"))...)
			opts := &belay.Options{
				Store: store, Tools: []belay.Tool{echoTool("echo")}, Hooks: []hook.Subscription{ctx}, Compaction: belay.Compaction{Window: 1000},
			}
			s := agentOf(t, model, opts).Session("s")
			say(t, s, "a")
			say(t, s, "b")
			request := model.Requests()[len(test.steps)-1]
			wantOutline(t, request.Messages, test.want...)
			for _, m := range transcript(t, s) {
				if m.IsCompaction && m.Keep != test.keep {
					t.Errorf("it keeps from %d on, not from %d", m.Keep, test.keep)
				}
			}
			// Another process that opens the session has the same context as the process
			// that made the summary.
			store.Expire("s")
			say(t, agentOf(t, model, opts).Session("s"), "c")
			again := seen(t, model)
			if diff := cmp.Diff(request.Messages, again[:min(len(again), len(request.Messages))], plainMessages); diff != "" {
				t.Errorf("another process sees another context (-first +second):\n%s", diff)
			}
		})
	}
}

// SPEC L-06: the tokens of messages after the model's last count are estimated. Counts from
// before a summary are ignored.
func TestCompactionCountsWhatIsThere(t *testing.T) {
	t.Parallel()
	big := anyTool("big", func(context.Context, *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: strings.Repeat("x", 2000)}, nil
	}, nil)
	model := scriptOf(
		scripted.Step{Calls: []scripted.Call{{Tool: "big"}}, Usage: belay.Usage{In: 400}}, // the result of big adds about 500 tokens
		says("the gist"), counted("one", belay.Usage{In: 100}), says("two"),
	)
	var d logbook
	after := belay.TurnPostCompaction.On("after", func(_ context.Context, c belay.CompactionDone) (belay.Note, error) {
		d.notef("less=%t", c.After() < c.Before())
		return belay.Note{}, nil
	}, nil)
	s := agentOf(t, model, &belay.Options{
		Tools: []belay.Tool{big}, Hooks: []hook.Subscription{after}, Compaction: belay.Compaction{Window: 1000},
	}).Session("s")
	say(t, s, "a")
	say(t, s, "b")
	wantEqual(t, "what was observed", d.all(), []string{"less=true"})
	wantOutline(t, transcript(t, s), "user: a", "assistant: call big", "results: result "+strings.Repeat("x", 2000), summed+"the gist",
		"assistant: one", "user: b", "assistant: two")
}

// SPEC L-06: a pending reminder is sent after the summary.
func TestCompactionKeepsReminders(t *testing.T) {
	t.Parallel()
	after := belay.TurnPostTurn.On("after", func(_ context.Context, _ belay.TurnEnded) (belay.Note, error) {
		return belay.Note{Output: "the turn is over"}, nil
	}, nil)
	for rule, test := range map[string]struct {
		usage  belay.Usage
		forced bool
		want   []string
	}{
		"by share": {belay.Usage{In: 900}, false, []string{summed + "the gist", "user: b", "reminder: Output of hook \"after\":\nthe turn is over"}},
		"forced":   {belay.Usage{}, true, []string{summed + "the gist", "user: b", "reminder: Output of hook \"after\":\nthe turn is over"}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			model := scriptOf(counted("one", test.usage), says("the gist"), says("two"))
			s := agentOf(t, model, &belay.Options{Hooks: []hook.Subscription{after}, Compaction: belay.Compaction{Window: 1000}}).Session("s")
			say(t, s, "a")
			if test.forced {
				succeeds(t, s.Compact(t.Context()))
			}
			say(t, s, "b")
			wantOutline(t, seen(t, model), test.want...)
		})
	}
}

// SPEC L-06, L-01.
func TestCompactionKeepsParkedCalls(t *testing.T) {
	t.Parallel()
	for name, newStore := range map[string]func() belay.Store{
		"in a store":                func() belay.Store { return memstore.New(nil) },
		"in the agent's own memory": func() belay.Store { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := scriptOf(says("one"), calls("echo", "asked"), says("the gist"), says("two"))
			opts := &belay.Options{
				Store: newStore(), OnAsk: belay.AskPark, Tools: []belay.Tool{echoTool("echo"), echoTool("asked")},
				Hooks: []hook.Subscription{belay.ToolPre.On("gate", func(_ context.Context, c belay.ToolCall) (belay.ToolVerdict, error) {
					if c.Tool() == "asked" {
						return belay.Ask("sure?"), nil
					}
					return belay.Pass, nil
				}, nil)},
			}
			agent := agentOf(t, model, opts)
			s := agent.Session("s")
			say(t, s, "a")
			parked := takeTurn(t, s.Run(t.Context(), "b"), belay.EndParked)
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if store, ok := opts.Store.(*memstore.Store); ok {
				store.Expire("s")
				agent = agentOf(t, model, opts)
				s = agent.Session("s")
			}
			wait := parked.Waits[0]
			if _, err := agent.Decide(t.Context(), belay.Decision{Approval: wait.ID, Hash: wait.Hash, Allow: true, By: "ann"}); err != nil {
				t.Fatal(err)
			}
			takeTurn(t, s.Resume(t.Context()), belay.EndTurn)
			wantOutline(t, seen(t, model), summed+"the gist", "assistant: call echo | call asked", "results: result {} | result {}")
		})
	}
}

// SPEC L-06.
func TestFailedCompactionChangesNothing(t *testing.T) {
	t.Parallel()
	broken := scripted.Step{Fault: &scripted.Fault{Kind: belay.ModelInvalid}}
	failed := func(d *logbook) hook.Subscription {
		return belay.TurnPostCompaction.On("after", func(_ context.Context, c belay.CompactionDone) (belay.Note, error) {
			d.notef("%s failed=%t same=%t", c.Trigger(), c.Failed(), c.Before() == c.After())
			return belay.Note{}, nil
		}, nil)
	}
	t.Run("when the window is full the turn goes on", func(t *testing.T) {
		t.Parallel()
		var d logbook
		model := scriptOf(counted("one", belay.Usage{In: 900}), broken, says("two"))
		s := agentOf(t, model, &belay.Options{Compaction: belay.Compaction{Window: 1000}, Hooks: []hook.Subscription{failed(&d)}}).Session("s")
		say(t, s, "a")
		all := takeTurn(t, s.Run(t.Context(), "b"), belay.EndTurn)
		wantOutline(t, seen(t, model), "user: a", "assistant: one", "user: b")
		wantEqual(t, "what was observed", d.all(), []string{"window failed=true same=true"})
		if end := last(t, all.of(belay.EventCompactionEnd)); end.Message != nil || !strings.Contains(end.Text, "compaction:") {
			t.Errorf("the event is %+v", end)
		}
	})
	t.Run("it is tried once in a turn", func(t *testing.T) {
		t.Parallel()
		var d logbook
		full := belay.Usage{In: 900}
		model := scriptOf(counted("one", full), broken, scripted.Step{Calls: []scripted.Call{{Tool: "echo"}}, Usage: full}, says("two"))
		s := agentOf(t, model, &belay.Options{
			Compaction: belay.Compaction{Window: 1000}, Hooks: []hook.Subscription{failed(&d)}, Tools: []belay.Tool{echoTool("echo")},
		}).Session("s")
		say(t, s, "a")
		say(t, s, "b")
		wantEqual(t, "what was observed", d.all(), []string{"window failed=true same=true"})
		wantOutline(t, transcript(t, s), "user: a", "assistant: one", "user: b", "assistant: call echo", "results: result {}", "assistant: two")
	})
	t.Run("when forced it is an error", func(t *testing.T) {
		t.Parallel()
		for name, step := range map[string]scripted.Step{
			"the model fails": broken, "it says nothing": {Text: " \n"}, "it calls a tool": calls("echo"),
		} {
			var d logbook
			model := scriptOf(says("one"), step, says("two"))
			s := agentOf(t, model, &belay.Options{Hooks: []hook.Subscription{failed(&d)}}).Session("s")
			say(t, s, "a")
			if err := s.Compact(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "compaction: ") {
				t.Errorf("%s: the error is %v", name, err)
			}
			say(t, s, "b")
			wantOutline(t, transcript(t, s), "user: a", "assistant: one", "user: b", "assistant: two")
			wantEqual(t, "what was observed", d.all(), []string{"forced failed=true same=true"})
		}
	})
	t.Run("a summary that cannot be stored", func(t *testing.T) {
		t.Parallel()
		// The commits are the user's message, the response and the summary.
		store := storetest.Faulty(memstore.New(nil), &storetest.Plan{Commit: 3})
		model := scriptOf(says("one"), says("the gist"), says("two"))
		s := agentOf(t, model, &belay.Options{Store: store}).Session("s")
		say(t, s, "a")
		if err := s.Compact(t.Context()); !errors.Is(err, storetest.ErrInjected) {
			t.Errorf("the error is %v", err)
		}
		say(t, s, "b")
		wantOutline(t, seen(t, model), "user: a", "assistant: one", "user: b")
	})
	t.Run("a hook that fails closed", func(t *testing.T) {
		t.Parallel()
		closed := belay.TurnPreCompaction.On("advice", func(context.Context, belay.CompactionAhead) (belay.CompactionAdvice, error) {
			return belay.CompactionAdvice{}, errors.New("out of order")
		}, &hook.Options{Failure: hook.Closed})
		model := scriptOf(counted("one", belay.Usage{In: 900}))
		s := agentOf(t, model, &belay.Options{Compaction: belay.Compaction{Window: 1000}, Hooks: []hook.Subscription{closed}}).Session("s")
		say(t, s, "a")
		turn, err := s.Turn(t.Context(), "b")
		if _, ok := errors.AsType[*hook.FailureError](err); !ok || turn.Reason != belay.EndError {
			t.Errorf("the turn ended %s: %v", turn.Reason, err)
		}
	})
}

// SPEC L-06: a conversation can continue forever in a window that the provider enforces,
// and no reminder is lost.
func TestCompactionForever(t *testing.T) {
	t.Parallel()
	const turns, window = 200, 800
	for name, share := range map[string]float64{"by share": 0.8, "when the provider says so": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var asked int
				summaries := 0
				model := scripted.New([]scripted.Step{{Compute: func(_ context.Context, req *belay.Request) (scripted.Step, error) {
					newest := req.Messages[len(req.Messages)-1].Text()
					switch {
					case strings.Contains(newest, "Summarize"):
						summaries++
						return scripted.Step{Text: fmt.Sprintf("summary %d", summaries)}, nil
					case last(t, req.Messages).Kind == belay.KindResults:
						return says("done"), nil
					default:
						asked++
						return scripted.Step{Text: strings.Repeat("w", 60), Calls: []scripted.Call{{Tool: "echo", Input: fmt.Sprintf(`{"n":%d}`, asked)}}}, nil
					}
				}}}, &scripted.Options{Window: window, Repeat: true, Pace: atOnce, Keep: 5000})
				told := map[string]bool{}
				s := agentOf(t, model, &belay.Options{
					Tools: []belay.Tool{echoTool("echo")}, Compaction: belay.Compaction{Share: share},
					Hooks: []hook.Subscription{belay.TurnPostTurn.On("after", func(_ context.Context, e belay.TurnEnded) (belay.Note, error) {
						return belay.Note{Output: "after turn " + e.Turn()}, nil
					}, nil)},
				}).Session("s")
				var ids []string
				for i := range turns {
					ids = append(ids, say(t, s, fmt.Sprintf("turn %d %s", i, strings.Repeat("u", 100))).ID)
				}
				if summaries < 10 {
					t.Errorf("it was summarized %d times", summaries)
				}
				for _, r := range model.Requests() {
					for _, text := range remindersOf(r.Messages) {
						told[text] = true
					}
				}
				for _, id := range ids[:turns-1] {
					if !told["<system-reminder>\nOutput of hook \"after\":\nafter turn "+id+"\n</system-reminder>"] {
						t.Fatalf("the model was never told of turn %s", id)
					}
				}
				all := transcript(t, s)
				for i, m := range all {
					if m.Seq != int64(i+1) {
						t.Fatalf("message %d is numbered %d", i+1, m.Seq)
					}
				}
				users := slices.DeleteFunc(slices.Clone(all), func(m *belay.Message) bool { return m.Kind != belay.KindUser })
				if len(users) != turns {
					t.Errorf("%d messages of the user are kept, not %d", len(users), turns)
				}
				wantAnswered(t, model.Requests())
			})
		})
	}
}

// wantAnswered asserts for each request that the calls of a message are answered by the
// next message, and that no result is without its call.
func wantAnswered(t testing.TB, requests []belay.Request) {
	t.Helper()
	for i, r := range requests {
		var open []string
		for _, m := range r.Messages {
			var answered []string
			for j := range m.Parts {
				if result := m.Parts[j].Result; result != nil {
					answered = append(answered, result.Call)
				}
			}
			if !slices.Equal(open, answered) {
				t.Fatalf("request %d, message %d: the calls %q are followed by the results %q", i+1, m.Seq, open, answered)
			}
			open = nil
			for _, c := range m.Calls() {
				open = append(open, c.ID)
			}
		}
		if open != nil {
			t.Fatalf("request %d ends with open calls", i+1)
		}
	}
}
