package serve

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// Every request in the form of OpenAI gives a message for the agent, or an error of the client
// in words. The text of the last user message is always part of the message.
//
// SPEC V-09, V-06
func FuzzOpenAIMessages(f *testing.F) {
	f.Add(false, true, `{"model": "main", "input": "hello"}`)
	f.Add(false, false, `{"model": "main", "input": [{"role": "user", "content": [{"type": "input_text", "text": "hello"}]}], "conversation": {"id": "s"}}`)
	f.Add(false, false, `{"model": "main", "input": [{"type": "function_call_output", "call_id": "c"}], "previous_response_id": "r"}`)
	f.Add(true, false, `{"model": "main", "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": null}, {"role": "user", "content": "b"}]}`)
	f.Add(true, true, `{"model": "main", "messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}], "n": 2}`)
	byID := make(map[string]operation)
	for _, op := range operations() {
		byID[op.id] = op
	}
	f.Fuzz(func(t *testing.T, chat, known bool, body string) {
		id := "createResponse"
		if chat {
			id = "chatCompletion"
		}
		op, ok := byID[id]
		if !ok {
			t.Fatalf("there is no operation %s", id)
		}
		r := httptest.NewRequestWithContext(t.Context(), op.method, "http://localhost/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		data, err := op.decode(r, func(string) string { return "" }, 1<<16)
		if err != nil {
			return // FuzzDecode checks these errors
		}
		text, session := "", ""
		if chat {
			var in chatIn
			if err := json.Unmarshal(data, &in); err != nil {
				t.Fatal(err)
			}
			text, err = in.text(known)
		} else {
			var in responseIn
			if err := json.Unmarshal(data, &in); err != nil {
				t.Fatal(err)
			}
			if session, err = in.session(""); err == nil {
				text, err = in.text(known)
			}
		}
		if err != nil {
			if p, ok := errors.AsType[*Problem](err); !ok || p.Status < 400 || p.Status > 422 || p.Field == "" {
				t.Errorf("%q gives the error %v, want a problem that names a field", body, err)
			}
			return
		}
		if strings.TrimSpace(text) == "" || !utf8.ValidString(text) || !utf8.ValidString(session) {
			t.Errorf("%q gives the message %q in the session %q", body, text, session)
		}
	})
}
