package providertest

import (
	"net/http"

	"github.com/belay-run/belay"
)

// Server is a loopback server that speaks the wire protocol of a provider, with
// scripted replies. It is as strict as the real service.
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

// LimitedServer is a Server whose protocol cannot say everything that a [Reply]
// can. Without it a server can say every reply.
type LimitedServer interface {
	Server
	// Cannot says what of a reply the protocol has no words for. It is empty if it
	// has words for all of it. A rule that needs such a reply is skipped, and the
	// reason is told.
	Cannot(reply Reply) string
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
	// Broken says that the answer was broken off, as scripted, before it was whole.
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
