package looptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/provider/scripted"
)

// Hooks at turn.post_turn get the beginning of the user's text and of the answer, if
// Options.NoPreviews is false.
func TestTextsAtTheEndOfATurn(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 3000)
	for name, test := range map[string]struct {
		opts            belay.Options
		asked, answered string
		user, text      string
	}{
		"short": {belay.Options{}, "hello", "hi", "hello", "hi"},
		"long":  {belay.Options{}, long, long, long[:4000], long[:4000]},
		"off":   {belay.Options{NoPreviews: true}, "hello", "hi", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got belay.TurnEnded
			test.opts.Hooks = []hook.Subscription{belay.TurnPostTurn.On("look", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
				got = in
				return belay.Note{}, nil
			}, nil)}
			belaytest.New(t, belaytest.Script(belaytest.Says(test.answered)), &test.opts).Say(test.asked)
			if got.UserText() != test.user || got.Text() != test.text {
				t.Errorf("the texts are %q and %q", got.UserText(), got.Text())
			}
		})
	}
}

// An entry of the prompt context can have a budget. It can also have data for later hooks,
// which the model does not see.
func TestDataOfPromptContext(t *testing.T) {
	t.Parallel()
	var seen []belay.ContextEntry
	entries := []belay.ContextEntry{
		{ID: "customer", Text: "The customer is Ada.", Budget: 12, Data: json.RawMessage(`{"tier":"secret-tier"}`)},
		{ID: "hidden", Data: json.RawMessage(`{"score":42}`)},
		{ID: "broken", Text: "broken", Data: json.RawMessage(`{`)},
	}
	agent := belaytest.New(t, belaytest.Script(belaytest.Says("hi"), belaytest.Says("bye")), &belay.Options{Hooks: []hook.Subscription{
		belay.TurnPrePromptContext.On("facts", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
			return belay.PromptContext{Entries: entries}, nil
		}, nil),
		belay.TurnPostTurn.On("spoil", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
			clear(in.Context()[0].Data)
			return belay.Note{}, nil
		}, nil),
		belay.TurnPostTurn.On("use", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
			seen = in.Context()
			return belay.Note{}, nil
		}, &hook.Options{After: []string{"spoil"}}),
	}})
	turn := agent.Say("hello")
	turn.Diagnosed(codes.ContextTruncated)
	turn.Diagnosed(codes.ContextDropped)
	if len(seen) != 2 || seen[0].Text != "The customer" || string(seen[0].Data) != `{"tier":"secret-tier"}` || seen[1].ID != "hidden" || string(seen[1].Data) != `{"score":42}` {
		t.Errorf("later hooks get %+v", seen)
	}
	request := ""
	for _, m := range turn.Requests[0].Messages {
		for _, p := range m.Parts {
			request += p.Text
		}
	}
	if !strings.Contains(request, "The customer\n") || strings.Contains(request, "secret-tier") || strings.Contains(request, "42") || strings.Count(request, "<context") != 1 {
		t.Errorf("the model gets %s", request)
	}
	entries = entries[1:2]
	if got := len(agent.Say("bye").Requests[0].Messages); got != len(turn.Requests[0].Messages)+2 { // two more messages: the answer and the new text
		t.Errorf("with nothing but data there are %d messages", got)
	}
}

// However a turn ends, hooks at turn.post_turn get the user's text, and the model's last
// text or the reply that replaces it.
func TestTextsAtEveryEndOfATurn(t *testing.T) {
	t.Parallel()
	type ending struct{ user, text string }
	for name, test := range map[string]struct {
		opts  belay.Options
		steps []scripted.Step
		run   func(t *testing.T, a *belay.Agent)
		want  []ending
	}{
		"an error of the model": {
			steps: []scripted.Step{{Text: "I look.", Calls: []scripted.Call{{Tool: "act"}}}, {Fault: &scripted.Fault{Kind: belay.ModelInvalid}}},
			run:   func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "go") },
			want:  []ending{{"go", "I look."}},
		},
		"an abort in a tool": {
			steps: []scripted.Step{{Text: "I look.", Calls: []scripted.Call{{Tool: "act"}}}},
			run: func(t *testing.T, a *belay.Agent) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for e := range a.Session("s").Run(ctx, "go") {
					if e.Kind == belay.EventToolUse {
						cancel()
					}
				}
			},
			want: []ending{{"go", "I look."}},
		},
		"an answer of a directive": {
			run:  func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "/hi there") },
			want: []ending{{"[invoked_extension__hook_hi] there", "hello"}},
		},
		"a directive that fails": {
			run:  func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "/fail now") },
			want: []ending{{"[invoked_extension__hook_fail] now", ""}},
		},
		"an answer of a hook": {
			opts: belay.Options{Hooks: []hook.Subscription{belay.UserPromptSubmit.On("faq", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
				return belay.AnswerPrompt("see the FAQ"), nil
			}, &hook.Options{Capabilities: hook.CanAnswer})}},
			run:  func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "how?") },
			want: []ending{{"how?", "see the FAQ"}},
		},
		"a message that a hook denies": {
			opts: belay.Options{Hooks: []hook.Subscription{belay.UserPromptSubmit.On("no", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
				return belay.DenyPrompt("no"), nil
			}, nil)}},
			run:  func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "how?") },
			want: []ending{{"how?", ""}},
		},
		"a rewriter and a hook that denies": {
			opts: belay.Options{Hooks: []hook.Subscription{
				belay.UserPromptSubmit.On("a-no", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
					return belay.DenyPrompt("no"), nil
				}, nil),
				belay.UserPromptSubmit.On("redact", func(_ context.Context, in belay.UserPrompt) (belay.PromptVerdict, error) {
					return belay.RewritePrompt(strings.ReplaceAll(in.Text(), "hunter2", "[REDACTED]")), nil
				}, rewritesPrompt),
			}},
			run:  func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "my password is hunter2") },
			want: []ending{{"my password is [REDACTED]", ""}},
		},
		"a rewriter that fails and a hook that denies": {
			opts: belay.Options{Hooks: []hook.Subscription{
				belay.UserPromptSubmit.On("a-no", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
					return belay.DenyPrompt("no"), nil
				}, nil),
				belay.UserPromptSubmit.On("redact", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
					return belay.PromptVerdict{}, errors.New("no rules")
				}, rewritesPrompt),
			}},
			run:  func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "my password is hunter2") },
			want: []ending{{"", ""}},
		},
		"a resumed turn that a person ends": {
			opts:  belay.Options{OnAsk: belay.AskPark, Hooks: []hook.Subscription{gateOf("ask", belay.Ask("sure?"))}},
			steps: []scripted.Step{{Text: "I act.", Calls: []scripted.Call{{Tool: "act"}}}, {Fault: &scripted.Fault{Kind: belay.ModelInvalid}}},
			run: func(t *testing.T, a *belay.Agent) {
				turn, err := a.Session("s").Turn(t.Context(), "go")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := a.Decide(t.Context(), belay.Decision{Approval: turn.Waits[0].ID, Hash: turn.Waits[0].Hash, By: "ann"}); err != nil {
					t.Fatal(err)
				}
				_, _ = belay.Await(a.Session("s").Resume(t.Context()))
			},
			want: []ending{{"go", "I act."}},
		},
		"a parked turn that is given up, and the next one": {
			opts:  belay.Options{OnAsk: belay.AskPark, Hooks: []hook.Subscription{gateOf("ask", belay.Ask("sure?"))}},
			steps: []scripted.Step{{Text: "I act.", Calls: []scripted.Call{{Tool: "act"}}}},
			run: func(t *testing.T, a *belay.Agent) {
				s := a.Session("s")
				if _, err := s.Turn(t.Context(), "go"); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Abandon(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, _ = s.Turn(t.Context(), "/fail now")
			},
			want: []ending{{"go", "I act."}, {"[invoked_extension__hook_fail] now", ""}},
		},
		"a turn that is summarized": {
			steps: []scripted.Step{{Text: "I look.", Calls: []scripted.Call{{Tool: "compact"}}}, says("the gist"), {Fault: &scripted.Fault{Kind: belay.ModelInvalid}}},
			run:   func(t *testing.T, a *belay.Agent) { _, _ = a.Session("s").Turn(t.Context(), "go") },
			want:  []ending{{"go", "I look."}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []ending
			opts := test.opts
			opts.Hooks = append(slices.Clone(opts.Hooks), belay.TurnPostTurn.On("look", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
				got = append(got, ending{in.UserText(), in.Text()})
				return belay.Note{}, nil
			}, nil))
			opts.Tools = []belay.Tool{echoTool("act"), anyTool("compact", func(_ context.Context, call *belay.Invocation) (belay.Result, error) {
				return belay.Result{}, call.Controls().Compact()
			}, nil)}
			opts.Directives = []belay.Directive{
				directive("hi", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
					return belay.DirectiveOutcome{Reply: &belay.Reply{Text: "hello"}}, nil
				}),
				directive("fail", func(*belay.DirectiveUse) (belay.DirectiveOutcome, error) {
					return belay.DirectiveOutcome{}, errors.New("no")
				}),
			}
			agent, _ := newAgent(t, &opts, test.steps...)
			test.run(t, agent)
			if !slices.Equal(got, test.want) {
				t.Errorf("the texts are %q, want %q", got, test.want)
			}
		})
	}
}

// An entry with only data is not in the prompt, so the manifest does not list it. Data
// does not change the hash of an entry, because the model does not see the data.
func TestDataIsNotInTheManifest(t *testing.T) {
	t.Parallel()
	hashes := make(map[string]string)
	for _, data := range []string{"", `{"tier":1}`, `{"tier":2}`} {
		agent, _ := newAgent(t, &belay.Options{Hooks: []hook.Subscription{
			belay.TurnPrePromptContext.On("facts", func(context.Context, belay.TurnSoFar) (belay.PromptContext, error) {
				return belay.PromptContext{Entries: []belay.ContextEntry{
					{ID: "customer", Text: "The customer is Ada.", Data: json.RawMessage(data)}, {ID: "hidden", Data: json.RawMessage(`{"score":42}`)},
				}}, nil
			}, nil),
			belay.TurnPostPromptCompile.On("look", func(_ context.Context, m belay.PromptManifest) (belay.Note, error) {
				for _, p := range m.Parts() {
					if p.Kind == "context" {
						hashes[p.ID+data] = p.Hash
					}
				}
				return belay.Note{}, nil
			}, nil),
		}})
		takeTurn(t, agent.Session("s").Run(t.Context(), "hi"), belay.EndTurn)
	}
	if len(hashes) != 3 || hashes["customer"] == "" || hashes["customer"] != hashes[`customer{"tier":1}`] || hashes["customer"] != hashes[`customer{"tier":2}`] {
		t.Errorf("the manifests list %v", hashes)
	}
}
