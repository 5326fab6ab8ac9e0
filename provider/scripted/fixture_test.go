package scripted_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

// user returns a user message.
func user(text string) *belay.Message {
	return &belay.Message{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)}}
}

// assistant returns a message of the model.
func assistant(parts ...belay.Part) *belay.Message {
	return &belay.Message{Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: parts}
}

// results returns a message with results.
func results(all ...belay.ResultPart) *belay.Message {
	m := &belay.Message{Role: belay.RoleUser, Kind: belay.KindResults}
	for i := range all {
		m.Parts = append(m.Parts, belay.Part{Type: belay.PartResult, Result: &all[i]})
	}
	return m
}

// ask returns a request with messages.
func ask(messages ...*belay.Message) *belay.Request { return &belay.Request{Messages: messages} }

// heard is the result of a request.
type heard struct {
	chunks   []belay.Chunk // without the last
	response *belay.Response
	err      error
}

func listen(ctx context.Context, model belay.Model, req *belay.Request) heard {
	var h heard
	for chunk, err := range model.Stream(ctx, req) {
		switch {
		case err != nil:
			h.err = err
		case chunk.Response != nil:
			h.response = chunk.Response
		default:
			h.chunks = append(h.chunks, chunk)
		}
	}
	return h
}

// answer sends a request that must succeed.
func answer(t *testing.T, model belay.Model, req *belay.Request) heard {
	t.Helper()
	h := listen(t.Context(), model, req)
	if h.err != nil {
		t.Fatalf("the attempt failed: %v", h.err)
	}
	if h.response == nil {
		t.Fatal("the stream ended without a response")
	}
	return h
}

// fails sends a request that must fail with an error of a kind that contains
// some words.
func fails(t *testing.T, model belay.Model, req *belay.Request, kind belay.ModelErrorKind, words ...string) belay.ModelError {
	t.Helper()
	h := listen(t.Context(), model, req)
	if h.response != nil {
		t.Fatalf("the model answered %+v, want an error of kind %s", h.response, kind)
	}
	e, ok := errors.AsType[*belay.ModelError](h.err)
	if !ok || e.Kind != kind {
		t.Fatalf("error = %v, want kind %s", h.err, kind)
	}
	for _, w := range words {
		if !strings.Contains(e.Error(), w) {
			t.Errorf("error = %q, want %q in it", e.Error(), w)
		}
	}
	return *e
}

// textOf returns the text of a response.
func textOf(r *belay.Response) string {
	m := belay.Message{Parts: r.Parts}
	return m.Text()
}

// says returns steps with texts that arrive at once.
func says(texts ...string) []scripted.Step {
	steps := make([]scripted.Step, len(texts))
	for i, text := range texts {
		steps[i] = scripted.Step{Text: text, Pace: scripted.Pace{Chunk: scripted.Whole}}
	}
	return steps
}
