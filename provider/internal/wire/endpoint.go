package wire

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Endpoint sends requests to the HTTP API of a provider.
type Endpoint struct {
	client *http.Client
	base   url.URL
	header http.Header
}

// NewEndpoint returns an endpoint that adds header to every request. If client is nil, it
// uses [http.DefaultClient].
func NewEndpoint(client *http.Client, base *url.URL, header http.Header) *Endpoint {
	header.Set("User-Agent", "belay")
	e := &Endpoint{client: Client(client), base: *base, header: header}
	if !strings.HasPrefix(e.base.Path, "/") {
		e.base.Path = "/" + e.base.Path // net/http needs a path; users may leave it out
	}
	return e
}

// RefusalError is the error for an answer with a status of 400 or above.
type RefusalError struct {
	Status int
	// Text is the status line, such as "404 Not Found".
	Text   string
	Header http.Header
	// Body is the beginning of the answer's body, at most 1 MiB.
	Body []byte
}

func (r *RefusalError) Error() string { return "the service answered " + r.Text }

// Post sends a body and returns the answer. The caller must close the answer's body. The
// error is a [*RefusalError] if the service answered with a status of 400 or above.
func (e *Endpoint) Post(ctx context.Context, path string, body *Body) (*http.Response, error) {
	return e.send(ctx, http.MethodPost, path, body)
}

// Fetch sends a GET request. It returns the same results as Post.
func (e *Endpoint) Fetch(ctx context.Context, path string) (*http.Response, error) {
	return e.send(ctx, http.MethodGet, path, nil)
}

// send sends a request. The path may include a query.
func (e *Endpoint) send(ctx context.Context, method, path string, body *Body) (*http.Response, error) {
	address := e.base
	path, address.RawQuery, _ = strings.Cut(path, "?")
	r := &http.Request{Method: method, URL: address.JoinPath(path), Header: e.header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: e.base.Host}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		body.Attach(r)
	}
	answer, err := e.client.Do(r.WithContext(ctx))
	if err != nil {
		return nil, err //nolint:wrapcheck // net/http says what was sent where
	}
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err == nil {
		// The connection can be reused only if the whole body was read. If the body is
		// longer than maxRefusal, the connection is closed.
		_, _ = io.CopyN(io.Discard, answer.Body, 1)
	}
	return nil, &RefusalError{Status: answer.StatusCode, Text: answer.Status, Header: answer.Header, Body: said}
}
