package mcptool

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/netguard"
)

func newHTTP(s *spec, through *headed) *mcp.StreamableClientTransport {
	transport := &mcp.StreamableClientTransport{
		Endpoint:     s.url,
		MaxEventSize: mostMessage,
		MaxRetries:   2, // few, because the link retries too
		HTTPClient: &http.Client{
			Transport: through,
			CheckRedirect: func(r *http.Request, _ []*http.Request) error {
				return fmt.Errorf("the server redirects to %s, and Belay does not follow redirects because your headers may contain credentials: declare that URL if you trust it", r.URL.Redacted())
			},
		},
	}
	if b := s.bearer(); b != nil {
		transport.OAuthHandler = b
	}
	return transport
}

// hasAuthorization reports whether the declaration of the server has an Authorization header.
func (s *spec) hasAuthorization() bool {
	for name := range s.headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// headed is the transport of a server with a URL. It adds the declared headers, limits
// the size of responses, and repairs them (see readable.go).
type headed struct {
	headers map[string]string
	base    http.RoundTripper
	// announced is called when the server announces a change of its tools.
	announced func()
	// refused is set when the server rejected a request as unknown.
	refused atomic.Bool
}

// guarded returns the default transport. It uses no proxy, and does not connect to host
// names that resolve to private addresses.
var guarded = sync.OnceValue(func() *http.Transport { return netguard.Transport(nil) })

func (h *headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		if r.Header.Get(name) == "" { // do not replace headers of the protocol
			r.Header.Set(name, value)
		}
	}
	response, err := h.base.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("send a request: %w", err)
	}
	switch response.StatusCode {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		h.refused.Store(true)
	}
	kind, success := response.Header.Get("Content-Type"), response.StatusCode/100 == 2
	switch {
	case success && strings.HasPrefix(kind, "text/event-stream"): // the SDK limits each event
		response.Body = newReadableEvents(response.Body, h.announced)
	case success && strings.HasPrefix(kind, "application/json"):
		response.Body = &readableBody{ReadCloser: &bounded{response.Body, mostMessage}}
		response.ContentLength = -1 // the repair may make the body longer
	default: // the SDK reads the whole body of an error response
		response.Body = &bounded{response.Body, mostMessage}
	}
	return response, nil
}

// bounded is a response body whose Read fails after a number of bytes.
type bounded struct {
	io.ReadCloser

	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errLong
	}
	return n, err //nolint:wrapcheck // io.EOF must stay as it is
}

// httpReason returns a clearer error for common HTTP failures.
func httpReason(err error) error {
	if login, ok := errors.AsType[*loginError](err); ok {
		return login
	}
	text := err.Error()
	if strings.Contains(text, "SSE event exceeded") { // this error has no type
		return errLong
	}
	for _, status := range []string{"Unauthorized", "Forbidden"} {
		if strings.HasSuffix(text, ": "+status) {
			return fmt.Errorf("the server answers %q: add your credentials under headers, for example an Authorization header", status)
		}
	}
	return err
}
