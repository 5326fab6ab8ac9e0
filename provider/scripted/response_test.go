package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

func TestResponse(t *testing.T) {
	t.Parallel()
	type in struct {
		Path string `json:"path"`
	}
	call := func(id, tool, input string) belay.Part {
		return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}}
	}
	half := func(id, tool, text string) belay.Part {
		return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(`{}`), Malformed: text}}
	}
	for _, test := range []struct {
		rule string
		step scripted.Step
		want []belay.Part
		stop belay.StopReason
	}{
		{"an empty step is an empty answer", scripted.Step{}, nil, belay.StopEnd},
		{"text ends the turn", scripted.Step{Text: "hi"}, []belay.Part{belay.Text("hi")}, belay.StopEnd},
		{
			"thinking comes before text and text before calls",
			scripted.Step{Calls: []scripted.Call{{Tool: "read"}}, Text: "b", Thinking: "a"},
			[]belay.Part{{Type: belay.PartThinking, Text: "a"}, belay.Text("b"), call("call_1", "read", `{}`)},
			belay.StopToolUse,
		},
		{
			"a call without an id is numbered by its place",
			scripted.Step{Calls: []scripted.Call{{Tool: "a"}, {ID: "x", Tool: "b"}, {Tool: "c"}}},
			[]belay.Part{call("call_1", "a", `{}`), call("x", "b", `{}`), call("call_3", "c", `{}`)},
			belay.StopToolUse,
		},
		{
			"ids may be the same",
			scripted.Step{Calls: []scripted.Call{{ID: "x", Tool: "a"}, {ID: "x", Tool: "b"}}},
			[]belay.Part{call("x", "a", `{}`), call("x", "b", `{}`)},
			belay.StopToolUse,
		},
		{
			"text is taken for JSON and a value is encoded",
			scripted.Step{Calls: []scripted.Call{
				{Tool: "a", Input: ` {"path": 1}`},
				{Tool: "b", Input: []byte(`{"path":2}`)},
				{Tool: "c", Input: json.RawMessage(`{"path":3}`)},
				{Tool: "d", Input: map[string]any{"path": "x"}},
				{Tool: "e", Input: in{Path: "y"}},
			}},
			[]belay.Part{
				call("call_1", "a", ` {"path": 1}`), call("call_2", "b", `{"path":2}`), call("call_3", "c", `{"path":3}`),
				call("call_4", "d", `{"path":"x"}`), call("call_5", "e", `{"path":"y"}`),
			},
			belay.StopToolUse,
		},
		{
			"an input that is no JSON object is malformed",
			scripted.Step{Stop: belay.StopMaxTokens, Calls: []scripted.Call{{Tool: "a", Input: `{"path": "x`}, {Tool: "b", Input: `[1]`}}},
			[]belay.Part{half("call_1", "a", `{"path": "x`), half("call_2", "b", `[1]`)},
			belay.StopMaxTokens,
		},
		{"a refusal is a stop reason", scripted.Step{Text: "no", Stop: belay.StopRefusal}, []belay.Part{belay.Text("no")}, belay.StopRefusal},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			got := answer(t, scripted.New([]scripted.Step{test.step}, nil), ask(user("hi"))).response
			if diff := cmp.Diff(test.want, got.Parts); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if got.StopReason != test.stop {
				t.Errorf("stop reason = %q, want %q", got.StopReason, test.stop)
			}
			if got.Model != "scripted/script" {
				t.Errorf("model = %q, want the default name", got.Model)
			}
		})
	}
}

func TestCallsAreNumberedThroughTheScript(t *testing.T) {
	t.Parallel()
	step := scripted.Step{Calls: []scripted.Call{{Tool: "a"}, {Tool: "b"}}}
	model := scripted.New([]scripted.Step{step, step}, nil)
	answer(t, model, ask())
	if got := answer(t, model, ask()).response.Parts[1].Call.ID; got != "call_4" {
		t.Errorf("id of the fourth call = %q, want call_4", got)
	}
}

func TestResponseIsTheCallers(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Text: "a", Calls: []scripted.Call{{Tool: "read", Input: map[string]any{"path": "some file"}}}}}, &scripted.Options{Repeat: true})
	first := answer(t, model, ask()).response
	if input := first.Parts[1].Call.Input; cap(input) != len(input) {
		t.Error("there is room behind the input: who appends to it writes into the script")
	}
	first.Parts[0].Text, first.Parts[1].Call.Tool, first.Parts[1].Call.Input = "b", "write", nil
	second := answer(t, model, ask()).response
	if call := second.Parts[1].Call; second.Parts[0].Text != "a" || call.Tool != "read" || string(call.Input) != `{"path":"some file"}` {
		t.Errorf("the second response is %+v: what the caller did to the first one must not show", second.Parts)
	}
}

func TestInputThatCannotBeEncodedFails(t *testing.T) {
	t.Parallel()
	model := scripted.New([]scripted.Step{{Calls: []scripted.Call{{Tool: "read", Input: make(chan int)}}}}, nil)
	fails(t, model, ask(), belay.ModelInvalid, "step 1: call 1 (read)", "chan int")
}

func TestChunks(t *testing.T) {
	t.Parallel()
	step := scripted.Step{Thinking: " so, ", Text: "Guten Tag,\n Welt", Calls: []scripted.Call{{Tool: "read", Input: `{"path": "ä.md"}`}}}
	for _, test := range []struct {
		rule string
		size int
		want string // the chunks, separated by bars
	}{
		{"text arrives word by word", 0, `T: so, |Guten |Tag,\n |Welt|read call_1:{"path": |read call_1:"ä.md"}`},
		{"a size counts characters, not bytes", 12, `T: so, |Guten Tag,\n |Welt|read call_1:{"path": "ä.|read call_1:md"}`},
		{"a whole response has no deltas", scripted.Whole, ``},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			step := step
			step.Pace.Chunk = test.size
			model := scripted.New([]scripted.Step{step}, nil)
			h := answer(t, model, ask())
			all := make([]string, len(h.chunks))
			for i, c := range h.chunks {
				all[i] = c.Text
				if c.Thinking != "" {
					all[i] = "T:" + c.Thinking
				}
				if c.Input != nil {
					all[i] = c.Input.Tool + " " + c.Input.Call + ":" + c.Input.Text
				}
			}
			if got := strings.ReplaceAll(strings.Join(all, "|"), "\n", `\n`); got != test.want {
				t.Errorf("chunks = %s\nwant     %s", got, test.want)
			}
		})
	}
}
