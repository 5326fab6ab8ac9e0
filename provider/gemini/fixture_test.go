package gemini_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/gemini"
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

// call makes a part of a call.
func call(id, tool, input string) belay.Part {
	return belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: id, Tool: tool, Input: json.RawMessage(input)}}
}

// result makes a part of a result.
func result(id, tool string, r belay.Result) belay.Part {
	return belay.Part{Type: belay.PartResult, Result: &belay.ResultPart{Call: id, Tool: tool, Result: r}}
}

// hello is a request that says no more than that.
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
func wantFailure(t testing.TB, err error, kind belay.ModelErrorKind, text string) {
	t.Helper()
	_ = failureOf(t, err, kind, text) // it has been looked at
}

// failureOf asserts the kind of an error and a part of its text, and returns it.
func failureOf(t testing.TB, err error, kind belay.ModelErrorKind, text string) *belay.ModelError {
	t.Helper()
	var e *belay.ModelError
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want an error of kind %s with %q in it", err, kind, text)
	}
	return e
}

// wild opens a model that gets the same answer to everything, from a server that
// keeps to nothing.
func wild(t *testing.T, status int, contentType, body string, headers ...string) belay.Model {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return gemini.New(newer, &gemini.Options{Key: "key-of-a-test", URL: server.URL})
}

// stream opens a model that hears these events, as the service ends them.
func stream(t *testing.T, events ...string) belay.Model {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		b.WriteString(event(e))
	}
	return wild(t, http.StatusOK, "text/event-stream", b.String())
}

// event is an event of a stream.
func event(data string) string { return "data: " + data + "\r\n\r\n" }

// parts is the data of an event with these parts.
func parts(parts ...string) string {
	return `{"candidates":[{"content":{"parts":[` + strings.Join(parts, ",") + `],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4},"modelVersion":"gemini-3-flash-preview-09","responseId":"mAitaLmkHPPlz7IP"}`
}

// stopped is the data of the event that ends a stream.
func stopped(word string) string {
	return `{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"` + word + `","index":0}]}`
}

// echo starts a server that keeps what it was sent last, and answers nothing.
func echo(t *testing.T, sent *[]byte) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*sent, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, event(stopped("STOP")))
	}))
	t.Cleanup(server.Close)
	return server.URL
}
