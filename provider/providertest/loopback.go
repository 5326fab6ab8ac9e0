package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// wire is a protocol of a test server. It decodes requests and encodes replies.
type wire interface {
	// understand decodes a request into the fields of Request. It reports whether to stream
	// the answer, or why the server refuses the request.
	understand(r *http.Request, request *Request) (stream bool, refused *refused)
	// frames returns the events that stream a reply.
	frames(reply *Reply) []frame
	// whole returns the body of a reply that is not a stream.
	whole(reply *Reply) []byte
	// refusal returns a refusal in the service's form. It returns nil if the service has no
	// error of this kind.
	refusal(r *Refusal) *refused
	// broken returns the event that reports a refusal in a stream.
	broken(r *refused) frame
}

// listing is a wire that can list models.
type listing interface {
	// list returns the list of models, or a refusal.
	list(r *http.Request) ([]byte, *refused)
}

// refused is an error in the service's form.
type refused struct {
	status  int
	message string
	body    []byte
	header  map[string]string // headers, without Content-Type
}

// frame is an event of a stream.
type frame struct {
	name  string // empty if the event has no name
	data  []byte
	piece bool // the event contains a scripted piece
	// enough means that the answer is complete if the stream ends after this event.
	enough bool
}

// loopback is the part that the servers of all protocols share. It has the script and the
// recorded requests, and it can pause, delay, split and break off an answer.
type loopback struct {
	t       testing.TB
	key     string
	wire    wire
	server  *httptest.Server
	closing chan struct{}
	close   func()

	mu        sync.Mutex
	script    []Reply
	exchanges []*Request
}

// testKey is the default key of a server.
const testKey = "key-of-a-test"

// newLoopback starts a server. It stops when the test ends.
func newLoopback(t testing.TB, key string, w wire) *loopback {
	t.Helper()
	l := &loopback{t: t, key: key, wire: w, closing: make(chan struct{})}
	l.server = httptest.NewServer(http.HandlerFunc(l.serve))
	l.close = sync.OnceFunc(func() {
		close(l.closing)
		l.server.CloseClientConnections()
		l.server.Close()
	})
	t.Cleanup(l.Close)
	return l
}

// URL returns the server's address, without a path.
func (l *loopback) URL() string { return l.server.URL }

// Key returns the only key that the server accepts.
func (l *loopback) Key() string { return l.key }

// Script adds replies.
func (l *loopback) Script(replies ...Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.script = append(l.script, replies...)
}

// Requests returns the requests so far, in order.
func (l *loopback) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	requests := make([]Request, 0, len(l.exchanges))
	for _, r := range l.exchanges {
		requests = append(requests, *r)
	}
	return requests
}

// Close drops all connections and stops the server.
func (l *loopback) Close() { l.close() }

func (l *loopback) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	done := make(chan struct{})
	defer close(done)
	request := &Request{Header: r.Header, Body: body, Done: done}
	if lister, ok := l.wire.(listing); ok && r.Method == http.MethodGet {
		if list, refused := lister.list(r); refused != nil {
			refused.write(w)
		} else {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(list) //nolint:gosec // JSON, on loopback; and a client that has left is no fault
		}
		return
	}
	stream, refused := l.wire.understand(r, request)
	if refused != nil {
		request.Refused = refused.message
	}
	reply, ok := l.record(request)
	switch {
	case refused != nil:
		refused.write(w)
	case !ok:
		l.t.Errorf("providertest: request %d has no scripted reply: %.2000s", len(l.Requests()), body)
		l.wire.refusal(&Refusal{Kind: belay.ModelServer, Message: "no reply was scripted"}).write(w)
	case reply.Refusal != nil:
		l.refuse(w, reply.Refusal)
	case reply.Page != "":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, reply.Page) // an error means that the client has left
	case stream:
		l.stream(w, r, request, &reply)
	case reply.Hold != nil && !l.hold(r.Context(), reply.Hold, nil):
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(l.wire.whole(&reply)) // an error means that the client has left
	}
}

// record stores a request. It returns the next scripted reply, unless the server refuses the
// request.
func (l *loopback) record(request *Request) (Reply, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.exchanges = append(l.exchanges, request)
	if request.Refused != "" || len(l.script) == 0 {
		return Reply{}, false
	}
	reply := l.script[0]
	l.script = l.script[1:]
	return reply, true
}

// refuse sends a scripted refusal. For a network failure it drops the connection.
func (l *loopback) refuse(w http.ResponseWriter, r *Refusal) {
	refused := l.wire.refusal(r)
	if refused == nil {
		panic(http.ErrAbortHandler)
	}
	if r.RetryAfter != "" {
		w.Header().Set("Retry-After", r.RetryAfter)
	}
	refused.write(w)
}

// write sends the error.
func (r *refused) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) //nolint:gosec // JSON, on loopback; and a client that has left is no fault
}

// stream sends the events of a reply.
func (l *loopback) stream(w http.ResponseWriter, r *http.Request, request *Request, reply *Reply) {
	out := &outlet{w: w, flush: http.NewResponseController(w).Flush, size: reply.Flush}
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	pieces, held, enough := 0, reply.Hold == nil, false
	for i, f := range l.wire.frames(reply) {
		if !held && pieces == reply.Hold.After {
			held = true
			if !l.hold(r.Context(), reply.Hold, out) {
				return
			}
		}
		if b := reply.Break; b != nil && b.After == i {
			l.mu.Lock()
			request.Broken = !enough || !b.Clean || b.Error != ""
			l.mu.Unlock()
			l.breakOff(out, b)
			return
		}
		if reply.Delay > 0 && !l.wait(r.Context(), time.After(reply.Delay)) {
			return
		}
		out.send(f)
		enough = enough || f.enough
		if f.piece {
			pieces++
		}
	}
}

// breakOff ends a stream early.
func (l *loopback) breakOff(out *outlet, b *Break) {
	if b.Error != "" {
		if refused := l.wire.refusal(&Refusal{Kind: b.Error}); refused != nil {
			out.send(l.wire.broken(refused))
		}
	}
	if !b.Clean && b.Error == "" {
		panic(http.ErrAbortHandler) // drops the connection
	}
	_ = out.flush() // sends the headers of an answer without events
}

// hold waits, and reports whether to continue. If out is not nil, hold writes pings to it.
func (l *loopback) hold(ctx context.Context, h *Hold, out *outlet) bool {
	if h.Reached != nil {
		close(h.Reached)
	}
	var ping <-chan time.Time
	if h.Ping > 0 && out != nil {
		ticker := time.NewTicker(h.Ping)
		defer ticker.Stop()
		ping = ticker.C
	}
	for {
		select {
		case <-ping:
			out.write([]byte(": still there\n\n"))
		case <-h.Until:
			return true
		case <-ctx.Done():
			return false
		case <-l.closing:
			return false
		}
	}
}

// wait waits for moment, and reports whether to continue.
func (l *loopback) wait(ctx context.Context, moment <-chan time.Time) bool {
	select {
	case <-moment:
		return true
	case <-ctx.Done():
	case <-l.closing:
	}
	return false
}

// outlet writes events. If size is not 0, it splits them into pieces of size bytes.
type outlet struct {
	w     http.ResponseWriter
	flush func() error
	size  int
}

// send sends an event. It ignores errors, because hold and wait notice that a client has
// left.
func (o *outlet) send(f frame) {
	var text []byte
	if f.name != "" {
		text = fmt.Appendf(text, "event: %s\n", f.name)
	}
	o.write(fmt.Appendf(text, "data: %s\n\n", f.data))
}

func (o *outlet) write(text []byte) {
	for len(text) > 0 {
		n := len(text)
		if o.size > 0 {
			n = min(n, o.size)
		}
		_, _ = o.w.Write(text[:n])
		_ = o.flush()
		text = text[n:]
	}
}

// encodeJSON encodes a value. It panics if the value cannot be encoded.
func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("providertest: " + err.Error())
	}
	return data
}
