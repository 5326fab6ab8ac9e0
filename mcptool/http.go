package mcptool

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/netguard"
)

// newHTTP makes the transport to an address.
func newHTTP(s *spec, through *headed) *mcp.StreamableClientTransport {
	return &mcp.StreamableClientTransport{
		Endpoint:     s.url,
		MaxEventSize: mostMessage,
		MaxRetries:   2, // whoever keeps the server tries again by itself
		HTTPClient: &http.Client{
			Transport: through,
			CheckRedirect: func(r *http.Request, _ []*http.Request) error {
				return fmt.Errorf("it leads to %s, and headers are for the server that they were given for: write that address", r.URL.Redacted())
			},
		},
	}
}

// headed adds headers to requests, bounds what comes back and makes it readable.
type headed struct {
	headers map[string]string
	base    http.RoundTripper
	// announced is called when the server announces other tools.
	announced func()
	// refused is set when a request was refused as one that the server does not know.
	refused atomic.Bool
}

// guarded is the transport of all servers that have none of their own: it uses no proxy, and
// refuses host names that lead to private addresses when it connects.
var guarded = sync.OnceValue(func() *http.Transport { return netguard.Transport(nil) })

func (h *headed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, value := range h.headers {
		if r.Header.Get(name) == "" { // those of the protocol are its own
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
	case success && strings.HasPrefix(kind, "text/event-stream"): // its events are bounded one by one
		response.Body = newReadableEvents(response.Body, h.announced)
	case success && strings.HasPrefix(kind, "application/json"):
		response.Body = &readableBody{ReadCloser: &bounded{response.Body, mostMessage}}
		response.ContentLength = -1 // it may become longer
	default: // what a refusal says is read whole
		response.Body = &bounded{response.Body, mostMessage}
	}
	return response, nil
}

// bounded is a body that ends with an error where it gets too long.
type bounded struct {
	io.ReadCloser

	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errLong
	}
	return n, err //nolint:wrapcheck // the end of a body is told as it is
}

// httpReason says in plain words why an address did not answer as a server.
func httpReason(err error) error {
	text := err.Error()
	if strings.Contains(text, "SSE event exceeded") { // it has no type
		return errLong
	}
	for _, status := range []string{"Unauthorized", "Forbidden"} {
		if strings.HasSuffix(text, ": "+status) {
			return fmt.Errorf("it answers %q: give it what it wants under headers, such as Authorization", status)
		}
	}
	return err
}
