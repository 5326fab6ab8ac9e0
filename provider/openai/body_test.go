package openai_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/internal/wiretest"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// everything returns a request with every kind of content.
func everything() *belay.Request {
	thought := func(text, opaque string) belay.Part {
		return belay.Part{Type: belay.PartThinking, Text: text, Provider: "p", Opaque: json.RawMessage(opaque)}
	}
	return &belay.Request{
		System: "system", MaxTokens: 100,
		Tools: []belay.ToolDeclaration{{Name: "look.at", Description: "looks", InputSchema: json.RawMessage(`{ "type": "object", "properties": {"z": {"type":"string"}, "a": {"type":"string"}} }`)}, {Name: "wait"}},
		Messages: []*belay.Message{
			user("a <b> & \"c\""), user("d", " "),
			message(belay.RoleAssistant, thought("cut o", `{}`), thought("hm", `{"field":"reasoning_content"}`), belay.Text("One."), belay.Text("Two."), called("c.1", "look.at", `{"at": "<\u003c>\\u003c"}`), called("c2", "wait", `[]`)),
			message(belay.RoleUser, result("c.1", "look.at", belay.Failed("", "dark")), result("c2", "wait", belay.Result{Text: "ok", Media: []belay.Media{{MIME: "image/png", Data: []byte("png")}}})),
			message(belay.RoleUser, belay.Part{Type: belay.PartText, Text: "r", IsReminder: true}),
		},
	}
}

// The test fixes the exact bytes of a request. If they change, every open session misses its
// prompt cache once.
func TestBodies(t *testing.T) {
	t.Parallel()
	const schemas = `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}`
	const arguments = `"{\"at\":\"<<>\\\\u003c\"}"`
	t.Run("responses", func(t *testing.T) {
		t.Parallel()
		server := providertest.NewResponses(t, nil)
		const want = `{"model":"gpt-5.2","instructions":"system","tools":[` +
			`{"type":"function","name":"look_at_e07fcd46","description":"looks","parameters":` + schemas + `,"strict":false},` +
			`{"type":"function","name":"wait","parameters":{"type":"object","properties":{}},"strict":false}],"max_output_tokens":100,"store":false,"stream":true,"input":[` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"a <b> & \"c\""}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"d"}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One."}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Two."}]},` +
			`{"type":"function_call","call_id":"call_255b58d8aa3fb39830e0c31a887fa317","name":"look_at_e07fcd46","arguments":` + arguments + `},` +
			`{"type":"function_call","call_id":"c2","name":"wait","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"call_255b58d8aa3fb39830e0c31a887fa317","output":"Error: dark"},` +
			`{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"ok"},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,cG5n"}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"r"}]}]}`
		body := string(ask(t, server, open(server, &openai.Options{API: openai.Responses, Provider: "p"}), everything()).Body)
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
	t.Run("chat", func(t *testing.T) {
		t.Parallel()
		server := providertest.NewChat(t, nil)
		server.Script(providertest.Reply{Parts: []providertest.Part{providertest.Thinking("hm"), providertest.Text("a")}})
		model := open(server, &openai.Options{API: openai.Chat, Provider: "p"})
		if _, err := answer(t, model, hello()); err != nil { // the server accepts only thinking that it has sent itself
			t.Fatal(err)
		}
		const want = `{"model":"gpt-5.2","tools":[` +
			`{"type":"function","function":{"name":"look_at_e07fcd46","description":"looks","parameters":` + schemas + `}},` +
			`{"type":"function","function":{"name":"wait","parameters":{"type":"object","properties":{}}}}],"max_tokens":100,"stream_options":{"include_usage":true},"stream":true,"messages":[` +
			`{"role":"system","content":"system"},` +
			`{"role":"user","content":"a <b> & \"c\"\n\nd"},` +
			`{"role":"assistant","content":"One.\n\nTwo.","reasoning_content":"hm","tool_calls":[` +
			`{"id":"call_255b58d8aa3fb39830e0c31a887fa317","type":"function","function":{"name":"look_at_e07fcd46","arguments":` + arguments + `}},` +
			`{"id":"c2","type":"function","function":{"name":"wait","arguments":"{}"}}]},` +
			`{"role":"tool","tool_call_id":"call_255b58d8aa3fb39830e0c31a887fa317","content":"Error: dark"},` +
			`{"role":"tool","tool_call_id":"c2","content":"ok"},` +
			`{"role":"user","content":[{"type":"text","text":"The tool wait also returned this:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}},{"type":"text","text":"r"}]}]}`
		if diff := cmp.Diff(want, string(ask(t, server, model, everything()).Body)); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	})
}

// The messages are last in a request, so that a request begins with all bytes of the
// previous request.
func TestRequestsExtendEachOtherAsAWhole(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		model := open(server, &openai.Options{API: api, Effort: "low"})
		req := &belay.Request{System: "system", Tools: []belay.ToolDeclaration{{Name: "first.one", Description: "does <this> & that"}}}
		for i := range 10 {
			req.Messages = append(req.Messages, user(fmt.Sprint("question ", i)), user("<more>"))
			ask(t, server, model, req)
			if i%3 == 2 {
				req.Messages = append(req.Messages, user("the turn failed, and the user goes on"))
				ask(t, server, model, req)
			}
			req.Messages = append(req.Messages, said(fmt.Sprint("answer ", i)))
		}
		ends := map[openai.API]string{openai.Responses: `]}`, openai.Chat: `"}]}`}
		requests := server.Requests()
		for i := 1; i < len(requests); i++ {
			earlier, ok := bytes.CutSuffix(requests[i-1].Body, []byte(ends[api]))
			if !ok || !bytes.HasPrefix(requests[i].Body, earlier) {
				t.Fatalf("request %d does not begin with request %d:\n%s\n%s", i+1, i, requests[i].Body, requests[i-1].Body)
			}
		}
	})
}

// Results may be stored in separate messages. The service requires them together, before the
// user's other content.
func TestResultsComeFirst(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		picture := belay.Result{Text: "one", Media: []belay.Media{{MIME: "image/png", Data: []byte("png")}}}
		ask(t, server, open(server, &openai.Options{API: api}), &belay.Request{Messages: []*belay.Message{
			user("a"),
			message(belay.RoleAssistant, called("c1", "look", `{}`), called("c2", "look", `{}`)),
			message(belay.RoleUser, result("c1", "look", picture)),
			message(belay.RoleUser, belay.Part{Type: belay.PartText, Text: "r", IsReminder: true}),
			message(belay.RoleUser, result("c2", "look", belay.Result{Text: "two"})),
			user("b"),
		}})
	})
}

// A model encodes a message once. A later change of the message has no effect.
func TestOldMessagesAreNotEncodedAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		req := &belay.Request{Messages: []*belay.Message{user("as it was")}}
		first := ask(t, server, open(server, &openai.Options{API: api}), req)
		req.Messages[0].Parts[0].Text = "as it is"
		second := ask(t, server, open(server, &openai.Options{API: api}), req)
		if !bytes.Equal(first.Body, second.Body) {
			t.Errorf("the message was encoded again: %s", second.Body)
		}
	})
}

// A model must not send an encoding that was made for another protocol or provider.
func TestEncodingsAreToldApart(t *testing.T) {
	t.Parallel()
	responses, chat := providertest.NewResponses(t, nil), providertest.NewChat(t, nil)
	responses.Script(providertest.Reply{Parts: []providertest.Part{providertest.Thinking("secretly"), providertest.Text("a")}})
	ours := open(responses, &openai.Options{API: openai.Responses, Provider: "ours"})
	req := hello()
	r, err := answer(t, ours, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, message(belay.RoleAssistant, r.Parts...), user("and?"))
	for _, test := range []struct {
		rule   string
		server providertest.Server
		model  belay.Model
		want   bool
	}{
		{"who thought it gets it back", responses, ours, true},
		{"another server of the protocol does not", responses, open(responses, &openai.Options{API: openai.Responses, Provider: "theirs"}), false},
		{"the other protocol does not", chat, open(chat, &openai.Options{API: openai.Chat, Provider: "ours"}), false},
		{"who thought it still gets it back", responses, ours, true},
	} {
		if got := bytes.Contains(ask(t, test.server, test.model, req).Body, []byte("secretly")); got != test.want {
			t.Errorf("%s: thinking was sent: %t, want %t", test.rule, got, test.want)
		}
	}
}

// A model must use a cached head only for a request with the same system prompt, tools and
// limit.
func TestHeadsAreToldApart(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		schema := json.RawMessage(`{"type":"object","properties":{},"title":"a"}`)
		wiretest.HeadsAreDistinguished(t, server, open(server, &openai.Options{API: api}), schema)
	})
}

// A text that is not valid UTF-8 must be sent as the same bytes before and after it was
// stored as JSON.
func TestWrongBytesStayTheSame(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, api openai.API, server providertest.Server) {
		model := open(server, &openai.Options{API: api})
		m := message(belay.RoleUser, belay.Text("a\xff\xfeb\x00\x1f\u2028</b>"))
		stored, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var loaded belay.Message
		if err := json.Unmarshal(stored, &loaded); err != nil {
			t.Fatal(err)
		}
		first := ask(t, server, model, &belay.Request{Messages: []*belay.Message{m}})
		second := ask(t, server, model, &belay.Request{Messages: []*belay.Message{&loaded}})
		if !bytes.Equal(first.Body, second.Body) {
			t.Errorf("got %q, want %q", second.Body, first.Body)
		}
	})
}
