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

// NewEndpoint returns the endpoint at an address, with headers for every request. The client
// defaults to [http.DefaultClient].
func NewEndpoint(client *http.Client, base *url.URL, header http.Header) *Endpoint {
	header.Set("User-Agent", "belay")
	e := &Endpoint{client: Client(client), base: *base, header: header}
	if !strings.HasPrefix(e.base.Path, "/") {
		e.base.Path = "/" + e.base.Path // an address without one is complete for people, not for net/http
	}
	return e
}

// Refusal is the error of a request that a service answered with a status of 400 or above.
type Refusal struct {
	Status int
	// Text is the status line, such as "404 Not Found".
	Text   string
	Header http.Header
	// Body is the beginning of the body.
	Body []byte
}

func (r *Refusal) Error() string { return "the service answered " + r.Text }

// Post sends a body and returns the answer, which the caller closes. The error is a
// [*Refusal] if the service answered.
func (e *Endpoint) Post(ctx context.Context, path string, body *Body) (*http.Response, error) {
	return e.send(ctx, http.MethodPost, path, body)
}

// Fetch sends a request without a body, as Post does.
func (e *Endpoint) Fetch(ctx context.Context, path string) (*http.Response, error) {
	return e.send(ctx, http.MethodGet, path, nil)
}

// send sends a request. The path may have a query.
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
		// Reading to the end lets the connection be used again. A longer body is cut off.
		_, _ = io.CopyN(io.Discard, answer.Body, 1)
	}
	return nil, &Refusal{Status: answer.StatusCode, Text: answer.Status, Header: answer.Header, Body: said}
}
