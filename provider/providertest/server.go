package providertest

import (
	"net/http"

	"github.com/belay-run/belay"
)

// Server is a loopback server that speaks the wire protocol of a provider, with
// scripted replies. It is as strict as the real service.
type Server interface {
	// URL returns the address for the provider.
	URL() string
	// Key returns the only key that the server accepts.
	Key() string
	// Script adds replies. Each answers one request, in order. A request that is refused
	// takes no reply.
	Script(replies ...Reply)
	// Requests returns the requests so far, in order.
	Requests() []Request
	// Extends returns an error that says where a later request does not begin with the
	// bytes of an earlier one. It ignores what must move from request to request, such as
	// cache marks, and how consecutive messages of one role are joined.
	Extends(earlier, later Request) error
	// Close drops all connections and stops the server, as does the end of the test.
	Close()
}

// LimitedServer is a Server whose protocol cannot express every [Reply]. A server that does not
// implement it can express all of them.
type LimitedServer interface {
	Server
	// Cannot returns what part of a reply the protocol cannot express, or an empty string.
	// A rule that needs such a reply is skipped with this reason.
	Cannot(reply Reply) string
}

// Request is a request as it was received and as the server decoded it.
type Request struct {
	Header http.Header
	Body   []byte
	// Refused says what is malformed. The fields below may then be empty.
	Refused string
	// System, Messages, Tools and MaxTokens are the decoded request.
	System    string
	Messages  []Heard
	Tools     []belay.ToolDeclaration
	MaxTokens int
	// Broken says that the answer was broken off, as scripted, before it was complete.
	Broken bool
	// Done is closed when the server has finished the request: the answer is complete, or
	// the client has left.
	Done <-chan struct{}
}

// Heard is a message as a server decoded it.
type Heard struct {
	Role  belay.Role
	Parts []belay.Part
}
