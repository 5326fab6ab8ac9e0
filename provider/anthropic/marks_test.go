package anthropic_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
	"github.com/belay-run/belay/provider/providertest"
)

// reminder returns a message that is a reminder.
func reminder(text string) *belay.Message {
	return message(belay.RoleUser, belay.Part{Type: belay.PartText, Text: text, IsReminder: true})
}

// marked lists the tools, system prompts and texts of a request that have a cache mark.
func marked(t testing.TB, body []byte) []string {
	t.Helper()
	type markable struct {
		Name         string          `json:"name"`
		Text         string          `json:"text"`
		ToolUseID    string          `json:"tool_use_id"`
		CacheControl json.RawMessage `json:"cache_control"`
	}
	var r struct {
		Tools    []markable `json:"tools"`
		System   []markable `json:"system"`
		Messages []struct {
			Content []markable `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(r.Tools, r.System)
	for _, m := range r.Messages {
		all = append(all, m.Content...)
	}
	var found []string
	for _, m := range all {
		if m.CacheControl != nil {
			found = append(found, m.Name+m.Text+m.ToolUseID)
		}
	}
	return found
}

func TestMarks(t *testing.T) {
	t.Parallel()
	tools := []belay.ToolDeclaration{{Name: "first"}, {Name: "second"}}
	result := belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: "c1", Result: belay.Result{Text: "seen"}}}
	call := message(belay.RoleAssistant, belay.Text("looking"), belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: "c1", Tool: "first"}})
	for _, test := range []struct {
		rule string
		req  belay.Request
		want []string
	}{
		{"the system prompt covers the tools", belay.Request{System: "system", Tools: tools, Messages: []*belay.Message{user("a")}}, []string{"system", "a"}},
		{"without a system prompt the last tool is marked", belay.Request{Tools: tools, Messages: []*belay.Message{user("a")}}, []string{"second", "a"}},
		{"with neither the end alone is marked", belay.Request{Messages: []*belay.Message{user("a", "b")}}, []string{"b"}},
		{"where the request before ended is marked too", belay.Request{System: "system", Messages: []*belay.Message{user("a"), said("A"), user("b"), said("B"), user("c")}}, []string{"system", "b", "c"}},
		{"a result is marked", belay.Request{Messages: []*belay.Message{user("a"), call, message(belay.RoleUser, result)}}, []string{"a", "c1"}},
		{"what is before the reminders at the end is marked too", belay.Request{System: "system", Messages: []*belay.Message{user("a"), said("A"), user("b"), reminder("r"), reminder("s")}}, []string{"system", "a", "b", "s"}},
		{"a request of reminders has its end marked", belay.Request{Messages: []*belay.Message{reminder("r")}}, []string{"r"}},
		{"a response is not marked for reminders behind it", belay.Request{Messages: []*belay.Message{user("a"), said("A"), reminder("r")}}, []string{"a", "r"}},
		{"neighbours are one side", belay.Request{Messages: []*belay.Message{user("a"), user("b"), said("A"), said("B"), user("c"), user("d")}}, []string{"b", "d"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			server := providertest.NewAnthropic(t, nil)
			r := ask(t, server, open(server, nil), &test.req)
			if diff := cmp.Diff(test.want, marked(t, r.Body)); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
		})
	}
}

// The test fixes the exact bytes of a request. If they change, every open session misses its
// prompt cache once.
func TestBody(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	unsigned := belay.Part{Type: belay.PartThinking, Text: "cut o", Provider: "anthropic", Opaque: json.RawMessage(`{}`)}
	req := &belay.Request{System: "system", MaxTokens: 100, Tools: []belay.ToolDeclaration{{Name: "look", Description: "looks", InputSchema: json.RawMessage(`{ "type": "object" }`)}}, Messages: []*belay.Message{
		user("a"), user("b", ""),
		message(belay.RoleAssistant, unsigned, belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: "c1", Tool: "look", Input: json.RawMessage(`{"at": 1}`)}}),
		message(belay.RoleUser, belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: "c1", Result: belay.Failed("", "dark")}}),
		reminder("r"),
	}}
	const want = `{"model":"claude-sonnet-4-5","max_tokens":100,` +
		`"system":[{"type":"text","text":"system","cache_control":{"type":"ephemeral"}}],` +
		`"tools":[{"name":"look","description":"looks","input_schema":{"type":"object"}}],"stream":true,"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{"at":1}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"dark"}],"cache_control":{"type":"ephemeral"}},` +
		`{"type":"text","text":"r","cache_control":{"type":"ephemeral"}}]}]}`
	if diff := cmp.Diff(want, string(ask(t, server, open(server, nil), req).Body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// The messages are last in a request, so that a request begins with all bytes of the
// previous request.
func TestRequestsExtendEachOtherAsAWhole(t *testing.T) {
	t.Parallel()
	server := providertest.NewAnthropic(t, nil)
	model := open(server, &anthropic.Options{Thinking: 2000})
	req := &belay.Request{System: "system", Tools: []belay.ToolDeclaration{{Name: "first", Description: "does <this> & that"}}}
	for i := range 10 {
		req.Messages = append(req.Messages, user(fmt.Sprint("question ", i)), user("<more>"))
		ask(t, server, model, req)
		req.Messages = append(req.Messages, said(fmt.Sprint("answer ", i)))
	}
	unmark := func(r providertest.Request) []byte {
		return bytes.ReplaceAll(r.Body, []byte(`,"cache_control":{"type":"ephemeral"}`), nil)
	}
	requests := server.Requests()
	for i := 1; i < len(requests); i++ {
		earlier, ok := bytes.CutSuffix(unmark(requests[i-1]), []byte(`]}]}`))
		if !ok || !bytes.HasPrefix(unmark(requests[i]), earlier) {
			t.Fatalf("request %d does not begin with request %d:\n%s\n%s", i+1, i, requests[i].Body, requests[i-1].Body)
		}
	}
}
