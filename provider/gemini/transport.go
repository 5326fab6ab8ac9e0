package gemini

import (
	"context"
	"errors"
	"net/http"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay/provider/internal/wire"
)

// exchange is a request on its way through the SDK.
type exchange struct {
	body   *wire.Body
	sent   bool
	answer *http.Response // whose body is a stream of events, unless it is a refusal
}

type exchangeKey struct{}

// transport is the transport below the SDK. The SDK knows where the service is, how a
// request is paid and what a refusal says. But it would take every message of the
// conversation apart and put it together again for each request, and each event of
// the answer twice, through maps of anything: that costs more than all the rest,
// and turns the numbers in inputs into others. So the SDK is given nothing to say;
// the body that is ready is sent in place of its own, and the stream is kept from
// it.
type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		answer, err := t.base.RoundTrip(r)
		if err == nil {
			wire.CutList(answer)
		}
		return answer, err //nolint:wrapcheck // a transport hands on what it gets
	}
	x.sent = true
	if r.Body != nil {
		_ = r.Body.Close()
	}
	sent := r.WithContext(r.Context()) // a copy: a transport leaves the request as it is
	x.body.Attach(sent)
	answer, err := t.base.RoundTrip(sent)
	if err != nil {
		return nil, err //nolint:wrapcheck // a transport hands on what it gets
	}
	x.answer = answer
	seen := *answer
	if isAnswer(answer) {
		seen.Body = http.NoBody
	} else {
		wire.CutRefusal(&seen)
	}
	return &seen, nil
}

// isAnswer reports whether an answer is one, and not a refusal.
func isAnswer(r *http.Response) bool { return r != nil && r.StatusCode >= 200 && r.StatusCode < 300 }

// post sends a body and returns what came of it. Without an error there is an
// answer, and its body is the caller's to close.
func (m *Model) post(ctx context.Context, body *wire.Body) (*exchange, error) {
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
