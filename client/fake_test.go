package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/client"
)

// answers is a server in the process of the test. Each request gets the next answer, and the
// last answer is repeated.
type answers struct {
	t        *testing.T
	all      []answer
	requests []request
}

// request is what the server got.
type request struct {
	at     time.Time
	method string
	uri    string
	last   string // the header Last-Event-ID
	key    string // the header Idempotency-Key
	body   string
}

// answer is a response, or the error of a connection.
type answer struct {
	status int
	header map[string]string
	body   string
	err    error // the connection cannot be made
	broken error // the connection breaks after the body
	silent bool  // nothing more comes after the body
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	got := request{at: time.Now(), method: r.Method, uri: r.URL.RequestURI(), last: r.Header.Get("Last-Event-ID"), key: r.Header.Get("Idempotency-Key")}
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		got.body = string(data)
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		a.t.Errorf("%s %s is sent without the token", r.Method, r.URL)
	}
	next := a.all[min(len(a.requests), len(a.all)-1)]
	a.requests = append(a.requests, got)
	if next.err != nil {
		return nil, next.err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for name, value := range next.header {
		header.Set(name, value)
	}
	var body io.Reader = strings.NewReader(next.body)
	if next.broken != nil {
		body = io.MultiReader(body, failing{next.broken})
	}
	if next.silent {
		rest, end := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = end.CloseWithError(context.Cause(r.Context())) })
		body = io.MultiReader(body, rest)
	}
	return &http.Response{StatusCode: next.status, Status: http.StatusText(next.status), Header: header, Body: io.NopCloser(body), Request: r}, nil
}

// failing is a reader that returns an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

var errBroken = errors.New("the network is down")

// stream returns the answer with a stream of events.
func stream(lines ...string) answer {
	return answer{status: 200, header: map[string]string{"Content-Type": "text/event-stream"}, body: strings.Join(lines, "\n") + "\n"}
}

// problem returns an answer with a problem document.
func problem(status int, code, field string) answer {
	body := fmt.Sprintf(`{"type":"/v1/docs#%s","title":"It failed","status":%d,"detail":"the detail","code":%q,"field":%q}`, code, status, code, field)
	return answer{status: status, header: map[string]string{"Content-Type": "application/problem+json"}, body: body}
}

// dial returns a client of the answers.
func dial(t *testing.T, reconnect time.Duration, all ...answer) (*client.Client, *answers) {
	t.Helper()
	server := &answers{t: t, all: all}
	c, err := client.New("https://belay.example.com/prefix/", "secret", &client.Options{HTTP: &http.Client{Transport: server}, Reconnect: reconnect})
	if err != nil {
		t.Fatal(err)
	}
	return c, server
}
