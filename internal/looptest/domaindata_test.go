package looptest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// Hooks at turn.post_turn get the beginning of the user's text and of the answer, unless a
// setting forbids it.
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
