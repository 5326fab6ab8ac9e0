package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/belay-run/belay/serve/api"
)

// OperationInfo describes an operation for tests.
type OperationInfo struct {
	ID, Method, Path string
	Role             Role
	Unlimited        bool
	Stream           bool

	op operation
}

// Operations returns the table of operations.
func Operations() []OperationInfo {
	var all []OperationInfo
	for _, op := range operations() {
		all = append(all, OperationInfo{op.id, op.method, op.path, op.role, op.unlimited, op.stream != nil, op})
	}
	return all
}

// Decode decodes a request as the operation does.
func (o OperationInfo) Decode(r *http.Request, path func(string) string, limit int64) ([]byte, error) {
	return o.op.decode(r, path, limit)
}

// CheckResponse returns an error if a response does not match the schema of the operation.
func (o OperationInfo) CheckResponse(body []byte) error {
	if o.op.out == nil {
		if strings.TrimSpace(string(body)) != "" {
			return fmt.Errorf("the operation has no body, and sent %q", body)
		}
		return nil
	}
	described, err := typeOf(o.op.out)
	if err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	described.DropNulls(value)
	return described.Resolved.Validate(value)
}

// MostLogins is the number of failed logins that an address may make.
const MostLogins = mostLogins

// LimitListener is limitListener.
var LimitListener = limitListener

// SetTimeouts changes how long slow clients may take. Call it before Serve.
func (s *Server) SetTimeouts(header, body, event time.Duration) {
	s.timeouts.header, s.timeouts.body, s.timeouts.event = header, body, event
}

// SetQueueLook changes how often a waiting request looks at the queue. Call it before Serve.
func (s *Server) SetQueueLook(look time.Duration) { s.timeouts.look = look }

// SetAskTimeout changes how long the user of an MCP client may take. Call it before Serve.
func (s *Server) SetAskTimeout(ask time.Duration) { s.timeouts.ask = ask }

// Client returns the address of the client of a request.
func (s *Server) Client(r *http.Request) string { return s.client(r) }

// IsClean is isClean.
var IsClean = isClean

// SetTrustProxy makes a server read X-Forwarded-For.
func (s *Server) SetTrustProxy() { s.opts.TrustProxy = true }

// ValidPosition reports whether a stream of a session can begin at a position.
func ValidPosition(text string) bool { return validPosition.MatchString(text) }

// PartSize is partSize.
const PartSize = partSize

// WriteEvent writes a text as a stream does. A client may take the given time for each part.
func WriteEvent(w http.ResponseWriter, each time.Duration, text string) bool {
	out := &eventWriter{patientWriter: patientWriter{w: w, control: http.NewResponseController(w), each: each}}
	return out.write([]byte(text))
}

// Follow waits for the end of a queued turn of a session that was empty.
func (s *Server) Follow(ctx context.Context, session, queued string) (*api.TurnResult, error) {
	return s.follow(ctx, &followed{session: session, queued: queued, after: "0", token: &Token{}})
}
