package gemini

import (
	"context"
	"errors"
	"io"
	"net/http"

	sdk "google.golang.org/genai"
)

// exchange is a request on its way through the SDK.
type exchange struct {
	body   *body
	sent   bool
	answer *http.Response // whose body is a stream of events, unless it is a refusal
}

type exchangeKey struct{}

// wire is the transport below the SDK. The SDK knows where the service is, how a
// request is paid and what a refusal says. But it would take every message of the
// conversation apart and put it together again for each request, and each event of
// the answer twice, through maps of anything: that costs more than all the rest,
// and turns the numbers in inputs into others. So the SDK is given nothing to say;
// the body that is ready is sent in place of its own, and the stream is kept from
// it.
type wire struct{ base http.RoundTripper }

// What is read of a refusal, and of anything but a response, such as a list of models.
const (
	mostRefused = 1 << 20
	mostListed  = 16 << 20
)

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		answer, err := w.base.RoundTrip(r)
		if err == nil {
			answer.Body = struct {
				io.Reader
				io.Closer
			}{io.LimitReader(answer.Body, mostListed), answer.Body}
		}
		return answer, err //nolint:wrapcheck // a transport hands on what it gets
	}
	x.sent = true
	if r.Body != nil {
		_ = r.Body.Close()
	}
	sent := r.WithContext(r.Context()) // a copy: a transport leaves the request as it is
	sent.Body, sent.ContentLength = x.body.reader(), x.body.size
	sent.GetBody = func() (io.ReadCloser, error) { return x.body.reader(), nil }
	answer, err := w.base.RoundTrip(sent)
	if err != nil {
		return nil, err //nolint:wrapcheck // a transport hands on what it gets
	}
	x.answer = answer
	seen := *answer
	if isAnswer(answer) {
		seen.Body = http.NoBody
	} else {
		seen.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, mostRefused), answer.Body}
	}
	return &seen, nil
}

// isAnswer reports whether an answer is one, and not a refusal.
func isAnswer(r *http.Response) bool { return r != nil && r.StatusCode >= 200 && r.StatusCode < 300 }

// post sends a body and returns what came of it. Without an error there is an
// answer, and its body is the caller's to close.
func (m *Model) post(ctx context.Context, body *body) (*exchange, error) {
	x := &exchange{body: body}
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	for _, err := range m.client.Models.GenerateContentStream(ctx, m.name, nil, once) {
		if err != nil {
			if isAnswer(x.answer) {
				_ = x.answer.Body.Close()
			}
			return x, err
		}
	}
	if x.answer == nil {
		return x, errors.New("the SDK sent no request")
	}
	return x, nil
}

// once keeps the SDK from sending requests of its own.
var once = &sdk.GenerateContentConfig{AutomaticContinuation: new(bool)}
