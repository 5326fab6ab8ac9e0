// Package wiretest contains helpers for the tests of the providers: messages, requests and
// test servers. It also checks rules that the public suite in providertest cannot check.
package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/providertest"
)

// Message returns a message with a role and parts.
func Message(role belay.Role, parts ...belay.Part) *belay.Message {
	return &belay.Message{Role: role, Parts: parts}
}

// User returns a message of the user. Each text is a part.
func User(texts ...string) *belay.Message {
	m := Message(belay.RoleUser)
	for _, text := range texts {
		m.Parts = append(m.Parts, belay.Text(text))
	}
	return m
}

// Said returns a message of the model.
func Said(text string) *belay.Message { return Message(belay.RoleAssistant, belay.Text(text)) }

// Call returns a part with a call.
func Call(id, tool, input string) belay.Part {
	return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}

// Result returns a part with the result of a call.
func Result(id, tool string, r belay.Result) belay.Part {
	return belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: tool, Result: r}}
}

// Hello returns a small request.
func Hello() *belay.Request { return &belay.Request{Messages: []*belay.Message{User("hello")}} }

// Long returns a conversation with twenty tools. Each message has about a kilobyte.
func Long(messages int) *belay.Request {
	req := &belay.Request{System: strings.Repeat("Be careful. ", 500)}
	for i := range 20 {
		req.Tools = append(req.Tools, belay.ToolDeclaration{Name: fmt.Sprint("tool", i), Description: strings.Repeat("does things ", 20), InputSchema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	for i := range messages {
		if i%2 == 0 {
			req.Messages = append(req.Messages, User(strings.Repeat("question ", 110)))
		} else {
			req.Messages = append(req.Messages, Said(strings.Repeat("an answer ", 100)))
		}
	}
	return req
}

// Ask scripts an empty reply, sends a request, and returns the request as the server got it.
func Ask(t testing.TB, server providertest.Server, model belay.Model, req *belay.Request) providertest.Request {
	t.Helper()
	server.Script(providertest.Reply{})
	if _, err := Answer(t, model, req); err != nil {
		t.Fatal(err)
	}
	requests := server.Requests()
	return requests[len(requests)-1]
}

// Answer returns the response of a model to a request.
func Answer(t testing.TB, model belay.Model, req *belay.Request) (*belay.Response, error) {
	t.Helper()
	for chunk, err := range model.Stream(t.Context(), req) {
		if err != nil || chunk.Response != nil {
			return chunk.Response, err
		}
	}
	t.Fatal("the sequence ended without a response")
	return nil, nil
}

// WantFailure stops the test unless err is a [belay.ModelError] of the kind and its text
// contains the phrase. It returns err as a ModelError.
func WantFailure(t testing.TB, err error, kind belay.ModelErrorKind, phrase string) *belay.ModelError {
	t.Helper()
	failure, ok := errors.AsType[*belay.ModelError](err)
	if !ok || failure.Kind != kind || !strings.Contains(err.Error(), phrase) {
		t.Fatalf("got %v, want an error of kind %s with %q in it", err, kind, phrase)
	}
	return failure
}
