package providertest

import (
	"net/http"

	"github.com/belay-run/belay"
)

// Server is a loopback server that speaks the wire protocol of a provider, with
// scripted replies. It is as strict as the real service.
//
// A server whose protocol cannot say a reply skips the test that scripts it.
type Server interface {
	// URL is the address that a provider is pointed at.
	URL() string
	// Key is the only key that the server takes.
	Key() string
	// Script adds replies. Each answers one request, in order; a request that is
	// refused uses up none.
	Script(replies ...Reply)
	// Requests returns the requests so far, in order.
	Requests() []Request
	// Extends says where a later request fails to begin with the bytes of an
	// earlier one. What the protocol wants to move from request to request, such
	// as marks for a cache, does not count, nor does how messages of one side are
	// joined.
	Extends(earlier, later Request) error
	// Close drops all connections and stops the server. The end of the test does
	// so too.
	Close()
}

// Request is a request as it came and as the server understood it.
type Request struct {
	Header http.Header
	Body   []byte
	// Refused says what is malformed. The fields below may then be empty.
	Refused string
	// System, Messages, Tools and MaxTokens are what was understood.
	System    string
	Messages  []Heard
	Tools     []belay.ToolDeclaration
	MaxTokens int
	// Broken says that the answer was broken off, as scripted.
	Broken bool
	// Done is closed when the server is finished with the request: the answer is
	// complete, or the client has left.
	Done <-chan struct{}
}

// Heard is a message as a server understood it.
type Heard struct {
	Role  belay.Role
	Parts []belay.Part
}
