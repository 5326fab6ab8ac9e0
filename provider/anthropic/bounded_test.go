package anthropic_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/provider/anthropic"
)

// endless is a transport whose answers do not end. They say nothing either.
type endless struct{ status int }

func (e endless) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: e.status, Status: http.StatusText(e.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(&repeated{line: []byte(":" + string(bytes.Repeat([]byte("."), 8<<10)) + "\n")}), Request: r,
	}, nil
}

// repeated reads a line again and again.
type repeated struct{ line, left []byte }

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		r.left = r.line
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func TestAnAnswerThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	model := anthropic.New("m", &anthropic.Options{Key: "k", URL: "http://localhost", HTTPClient: &http.Client{Transport: endless{http.StatusOK}}})
	_, err := answer(t, model, &belay.Request{Messages: []*belay.Message{user("a")}})
	wantFailure(t, err, belay.ModelInvalid, "longer than 256 MiB")
}

func TestARefusalThatDoesNotEndIsBounded(t *testing.T) {
	t.Parallel()
	model := anthropic.New("m", &anthropic.Options{Key: "k", URL: "http://localhost", HTTPClient: &http.Client{Transport: endless{http.StatusServiceUnavailable}}})
	_, err := answer(t, model, &belay.Request{Messages: []*belay.Message{user("a")}})
	wantFailure(t, err, belay.ModelServer, "....")
	if _, err = model.Models(t.Context()); len(err.Error()) > 1000 {
		t.Errorf("the error is too long: %.2000s", err)
	}
	wantFailure(t, err, belay.ModelServer, "....")
}
