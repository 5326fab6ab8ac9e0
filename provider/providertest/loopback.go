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

// wire is what a protocol adds to a loopback server: how requests are read and
// how replies are worded.
type wire interface {
	// understand reads a request, fills in what it says, and tells whether the
	// answer is to be streamed, or how the request is refused.
	understand(r *http.Request, request *Request) (stream bool, refused *refused)
	// frames are the events of a reply.
	frames(reply *Reply) []frame
	// whole is the body of a reply that is not streamed.
	whole(reply *Reply) []byte
	// refusal words a refusal: a scripted one, or one in a stream. It is nil for
	// what the service has no words for.
	refusal(r *Refusal) *refused
	// broken is the event that tells of a refusal in a stream.
	broken(r *refused) frame
}

// listing is a wire that lists its models.
type listing interface {
	// list answers a request that is not for a model, or refuses it.
	list(r *http.Request) ([]byte, *refused)
}

// refused is an error as a service words it.
type refused struct {
	status  int
	message string
	body    []byte
	header  map[string]string // beside the content type
}

// frame is an event of a stream.
type frame struct {
	name  string // of an event that has one
	data  []byte
	piece bool // it carries a scripted piece
	// enough says that an answer which ends behind it is whole, if it ends as it
	// should.
	enough bool
}

// loopback is what the servers of all protocols share: the script, the record of
// what came, and how an answer is held, delayed, cut to pieces and broken off.
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

// testKey is the key that a server takes unless its options say another.
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

// URL is the server's address, without a path.
func (l *loopback) URL() string { return l.server.URL }

// Key is the only key that the server takes.
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

// serve answers a request.
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
		_, _ = io.WriteString(w, reply.Page) // a client that has left is no fault
	case stream:
		l.stream(w, r, request, &reply)
	case reply.Hold != nil && !l.hold(r.Context(), reply.Hold, nil):
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(l.wire.whole(&reply)) // a client that has left is no fault
	}
}

// record keeps a request and takes the reply to it from the script, unless it is
// refused.
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

// refuse answers with a scripted refusal. A network failure drops the connection.
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

// write answers with the error.
func (r *refused) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range r.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body) //nolint:gosec // JSON, on loopback; and a client that has left is no fault
}

// stream answers with the events of a reply.
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
		panic(http.ErrAbortHandler) // drops the connection without a word
	}
	_ = out.flush() // so that an answer without events has its headers
}

// hold waits and reports whether to go on. Signs of life go to out, if it is not nil.
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

// wait waits for a moment and reports whether to go on.
func (l *loopback) wait(ctx context.Context, moment <-chan time.Time) bool {
	select {
	case <-moment:
		return true
	case <-ctx.Done():
	case <-l.closing:
	}
	return false
}

// outlet writes events, whole or in pieces of some bytes.
type outlet struct {
	w     http.ResponseWriter
	flush func() error
	size  int
}

// send sends an event. A client that has left is noticed elsewhere.
func (o *outlet) send(f frame) {
	var text []byte
	if f.name != "" {
		text = fmt.Appendf(text, "event: %s\n", f.name)
	}
	o.write(fmt.Appendf(text, "data: %s\n\n", f.data))
}

// write sends text.
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

// encodeJSON encodes what cannot fail to encode.
func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("providertest: " + err.Error())
	}
	return data
}
