package scripted_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/scripted"
)

func user(text string) *belay.Message {
	return &belay.Message{Role: belay.RoleUser, Kind: belay.KindUser, Parts: []belay.Part{belay.Text(text)}}
}

func assistant(parts ...belay.Part) *belay.Message {
	return &belay.Message{Role: belay.RoleAssistant, Kind: belay.KindAssistant, Parts: parts}
}

func results(all ...belay.ResultPart) *belay.Message {
	m := &belay.Message{Role: belay.RoleUser, Kind: belay.KindResults}
	for i := range all {
		m.Parts = append(m.Parts, belay.Part{Type: belay.PartResult, Result: &all[i]})
	}
	return m
}

func ask(messages ...*belay.Message) *belay.Request { return &belay.Request{Messages: messages} }

// heard is what a model sent for a request.
type heard struct {
	chunks   []belay.Chunk // all chunks except the response
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

// answer sends a request and stops the test if it fails.
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

// fails sends a request and stops the test unless the error has the kind and contains the
// words.
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

func textOf(r *belay.Response) string {
	m := belay.Message{Parts: r.Parts}
	return m.Text()
}

// says returns a step for each text. Each response arrives as a whole.
func says(texts ...string) []scripted.Step {
	steps := make([]scripted.Step, len(texts))
	for i, text := range texts {
		steps[i] = scripted.Step{Text: text, Pace: scripted.Pace{Chunk: scripted.Whole}}
	}
	return steps
}
