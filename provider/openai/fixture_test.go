package openai_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/openai"
	"github.com/belay-run/belay/provider/providertest"
)

// message makes a message.
func message(role belay.Role, parts ...belay.Part) *belay.Message {
	return &belay.Message{Role: role, Parts: parts}
}

// user makes a message of the user.
func user(texts ...string) *belay.Message {
	m := message(belay.RoleUser)
	for _, text := range texts {
		m.Parts = append(m.Parts, belay.Text(text))
	}
	return m
}

// said makes a message of the assistant.
func said(text string) *belay.Message { return message(belay.RoleAssistant, belay.Text(text)) }

// called makes a part of a call.
func called(id, tool, input string) belay.Part {
	return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}

// result makes a part of a result.
func result(id, tool string, r belay.Result) belay.Part {
	return belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: tool, Result: r}}
}

// hello is a small request.
func hello() *belay.Request { return &belay.Request{Messages: []*belay.Message{user("hello")}} }

// ask sends a request, with an empty reply, and returns what the server got.
func ask(t testing.TB, server providertest.Server, model belay.Model, req *belay.Request) providertest.Request {
	t.Helper()
	server.Script(providertest.Reply{})
	if _, err := answer(t, model, req); err != nil {
		t.Fatal(err)
	}
	requests := server.Requests()
	return requests[len(requests)-1]
}

// answer returns the response to a request.
func answer(t testing.TB, model belay.Model, req *belay.Request) (*belay.Response, error) {
	t.Helper()
	for chunk, err := range model.Stream(t.Context(), req) {
		if err != nil || chunk.Response != nil {
			return chunk.Response, err
		}
	}
	t.Fatal("the sequence ended without a response")
	return nil, nil
}

// wantFailure asserts the kind of an error and a part of its text.
func wantFailure(t testing.TB, err error, kind belay.ModelErrorKind, text string) *belay.ModelError {
	t.Helper()
	var e *belay.ModelError
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want an error of kind %s with %q in it", err, kind, text)
	}
	return e
}

// both runs a test for both protocols.
func both(t *testing.T, test func(t *testing.T, api openai.API, server providertest.Server)) {
	t.Helper()
	for api, start := range map[openai.API]func(testing.TB) providertest.Server{openai.Responses: providertest.StartResponses, openai.Chat: providertest.StartChat} {
		t.Run(string(api), func(t *testing.T) {
			t.Parallel()
			test(t, api, start(t))
		})
	}
}

// wild opens a model that gets the same answer to everything, from a server that
// keeps to nothing.
func wild(t testing.TB, api openai.API, status int, contentType, body string) belay.Model {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return openai.New("m", &openai.Options{API: api, Key: "key-of-a-test", URL: server.URL})
}

// event is an event of a stream.
func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

// data is a chunk of a stream whose events have no names.
func data(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}
