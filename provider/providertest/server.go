package providertest

import (
	"net/http"

	"github.com/belay-run/belay"
)

// Server is a test server with the protocol of a provider. It sends scripted replies, and it
// is as strict as the real service.
type Server interface {
	// URL returns the address for the provider's options.
	URL() string
	// Key returns the only key that the server accepts.
	Key() string
	// Script adds replies. Each reply answers one request, in order. A request that the
	// server refuses uses no reply.
	Script(replies ...Reply)
	// Requests returns the requests so far, in order.
	Requests() []Request
	// Extends returns an error if the later request does not begin with the bytes of the
	// earlier request. The error says where they differ. Extends ignores cache marks and how
	// consecutive messages of one role are joined, because these change between requests.
	Extends(earlier, later Request) error
	// Close drops all connections and stops the server. The end of the test does this too.
	Close()
}

// LimitedServer is a Server whose protocol cannot express every [Reply]. Any other Server
// can express all replies.
type LimitedServer interface {
	Server
	// Cannot returns why the protocol cannot express a reply, or an empty string. A rule
	// that needs such a reply is skipped with this reason.
	Cannot(reply Reply) string
}

// Request is a request, with the bytes that the server received and the decoded content.
type Request struct {
	Header http.Header
	Body   []byte
	// Refused says what is wrong with a request that the server refused. If it is set,
	// the fields below may be empty.
	Refused string
	// System, Messages, Tools and MaxTokens are the decoded request.
	System    string
	Messages  []Heard
	Tools     []belay.ToolDeclaration
	MaxTokens int
	// Broken means that the server broke off the answer, as scripted, before it was
	// complete.
	Broken bool
	// Done is closed when the server has finished the request, because the answer is
	// complete or the client has left.
	Done <-chan struct{}
}

// Heard is a message as a server decoded it.
type Heard struct {
	Role  belay.Role
	Parts []belay.Part
}
