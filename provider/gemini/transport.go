package gemini

import (
	"context"
	"errors"
	"net/http"

	sdk "google.golang.org/genai"

	"github.com/belay-run/belay/provider/internal/wire"
)

// exchange is a request while it passes through the SDK.
type exchange struct {
	body   *wire.Body
	sent   bool
	answer *http.Response // its body is a stream of events, unless it is a refusal
}

type exchangeKey struct{}

// transport is the HTTP transport below the SDK. The SDK provides the address, the credentials
// and the decoding of refusals. But for each request it would decode and encode every message
// of the conversation, and every event of the answer twice, through map[string]any: that costs
// more than everything else, and changes the numbers in inputs. So the SDK gets an empty
// request. The transport sends the finished body in place of the SDK's, and hides the stream
// from the SDK.
type transport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		answer, err := t.base.RoundTrip(r)
		if err == nil {
			wire.CutList(answer)
		}
		return answer, err //nolint:wrapcheck // a transport returns the error it gets
	}
	x.sent = true
	if r.Body != nil {
		_ = r.Body.Close()
	}
	sent := r.WithContext(r.Context()) // a copy: a transport must not change the request
	x.body.Attach(sent)
	answer, err := t.base.RoundTrip(sent)
	if err != nil {
		return nil, err //nolint:wrapcheck // a transport returns the error it gets
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

// isAnswer reports whether an answer has a status of success.
func isAnswer(r *http.Response) bool { return r != nil && r.StatusCode >= 200 && r.StatusCode < 300 }

// post sends a body and returns the exchange. Without an error the exchange has an answer, and
// the caller closes it.
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

// once prevents the SDK from sending further requests.
var once = &sdk.GenerateContentConfig{AutomaticContinuation: new(bool)}
