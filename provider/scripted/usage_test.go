package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	request := &belay.Request{
		System: "12345678",
		Tools:  []belay.ToolDeclaration{{Name: "read", Description: "reads", InputSchema: json.RawMessage(`{}`)}},
		Messages: []*belay.Message{
			user("12345"),
			assistant(belay.Part{Type: belay.PartCall, Call: &belay.CallPart{Tool: "read", Input: json.RawMessage(`{"a":1}`)}}),
			results(belay.ResultPart{Result: belay.Result{Text: "12345"}}),
		},
	}
	for _, test := range []struct {
		rule string
		step scripted.Step
		req  *belay.Request
		want belay.Usage
	}{
		{"four bytes are a token, rounded up", scripted.Step{Text: "12345"}, request, belay.Usage{In: 10, Out: 2}},
		{"thinking and calls count", scripted.Step{Thinking: "1234", Calls: []scripted.Call{{Tool: "read", Input: `{}`}}}, ask(), belay.Usage{Out: 3}},
		{"a picture counts a thousand whatever its size", scripted.Step{}, ask(&belay.Message{Parts: []belay.Part{belay.Image("image/png", make([]byte, 1<<20))}}), belay.Usage{In: 1000}},
		{"stated usage is taken as it is", scripted.Step{Text: "12345", Usage: belay.Usage{In: 7, Cost: 0.5}}, request, belay.Usage{In: 7, Cost: 0.5}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			if got := answer(t, scripted.New([]scripted.Step{test.step}, nil), test.req).response.Usage; got != test.want {
				t.Errorf("usage = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	hi, hello, how := user("12345678"), assistant(belay.Text("1234")), user("12345678")
	tools := []belay.ToolDeclaration{{Name: "read"}}
	base := &belay.Request{System: "1234", Tools: tools, Messages: []*belay.Message{hi}}
	for _, test := range []struct {
		rule string
		next *belay.Request
		want belay.Usage
	}{
		{"what extends the last request is new", &belay.Request{System: "1234", Tools: tools, Messages: []*belay.Message{hi, hello, how}}, belay.Usage{In: 3, CacheRead: 4}},
		{"the same request is all cached", base, belay.Usage{CacheRead: 4}},
		{"equal tools in another slice are the same", &belay.Request{System: "1234", Tools: []belay.ToolDeclaration{{Name: "read"}}, Messages: []*belay.Message{hi}}, belay.Usage{CacheRead: 4}},
		{"another system prompt reads nothing", &belay.Request{System: "4321", Tools: tools, Messages: []*belay.Message{hi}}, belay.Usage{In: 4}},
		{"other tools read nothing", &belay.Request{System: "1234", Messages: []*belay.Message{hi}}, belay.Usage{In: 3}},
		{"what follows a difference is new", &belay.Request{System: "1234", Tools: tools, Messages: []*belay.Message{hello, hi}}, belay.Usage{In: 3, CacheRead: 2}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			model := scripted.New([]scripted.Step{{}}, &scripted.Options{Cache: true, Repeat: true})
			if got, want := answer(t, model, base).response.Usage, (belay.Usage{In: 4}); got != want {
				t.Errorf("usage of the first request = %+v, want %+v", got, want)
			}
			if got := answer(t, model, test.next).response.Usage; got != test.want {
				t.Errorf("usage of the second = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWithoutCacheNothingIsRead(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{}}, &scripted.Options{Repeat: true})
	for range 2 {
		if got, want := answer(t, model, ask(user("1234"))).response.Usage, (belay.Usage{In: 1}); got != want {
			t.Errorf("usage = %+v, want %+v", got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	t.Parallel()
	model := scripted.New(says("fits"), &scripted.Options{Window: 10})
	fails(t, model, ask(user(strings.Repeat("x", 41))), belay.ModelTooLong, "about 11 tokens", "window of 10 tokens")
	if got := textOf(answer(t, model, ask(user(strings.Repeat("x", 40)))).response); got != "fits" {
		t.Errorf("a request that fits hears %q: one that is too long must not use up a step", got)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	price := belay.Price{In: 3, Out: 15}
	got := scripted.New(nil, &scripted.Options{Name: "test/m", Window: 10, MaxOutput: 5, Price: price}).Info()
	if want := (belay.ModelInfo{Name: "test/m", Window: 10, MaxOutput: 5, Price: price}); got != want {
		t.Errorf("info = %+v, want %+v", got, want)
	}
}
