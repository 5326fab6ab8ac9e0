package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/serve/api"
)

// frame is one server-sent event.
type frame struct {
	id    string // empty: the client keeps the last id
	event string
	data  any

	encoded []byte // the text of the frame, if it is known; streams share it, so nobody changes it
}

const (
	// retryAfter is when a client should connect again after the server has stopped.
	retryAfter = 2 * time.Second
	// mostWaiting is how many events may wait for a slow client. Then events that are not
	// stored are dropped, and the client gets an event "missed".
	mostWaiting = 256
)

// events are the kinds of events that only streams have.
const (
	eventMissed  = api.EventMissed  // the client was too slow: events that are not stored were dropped
	eventProblem = api.EventProblem // the stream ends with an error
)

// errDrained is the cause of the end of a stream when the server stops.
var errDrained = errors.New("the server stops")

// streamEvents sends events until the client leaves, the token is revoked or the server
// stops. produce calls send for each event, and must end when its context ends or send returns
// false. session is the session of the stream, or empty: the stream ends when the token may no
// longer see the session.
//
// An idle stream has no goroutine of its own, besides that of net/http: goroutines for writing
// and for the comments exist only while they write.
func (s *Server) streamEvents(ctx context.Context, q *request, session string, produce func(ctx context.Context, send func(frame) bool) error) error {
	if s.stopping() {
		p := problem(http.StatusServiceUnavailable, codes.ServerDraining, "the server is stopping: connect again")
		p.retry = int(retryAfter.Seconds())
		return p
	}
	closed, p := s.usages.openStream(q.token)
	if p != nil {
		return p
	}
	defer closed()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &eventWriter{patientWriter: patientWriter{w: q.w, control: http.NewResponseController(q.w), each: s.timeouts.event}, cancel: cancel}
	q.w.Header().Set("Content-Type", "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no") // nginx must not hold events back
	q.w.WriteHeader(http.StatusOK)
	if !out.comment("connected") {
		return nil
	}
	stopDraining := context.AfterFunc(s.draining, func() { cancel(errDrained) })
	defer stopDraining()
	out.pings(s.opts.Ping, func() error { return s.maySee(ctx, q, session) })
	err := s.produce(ctx, q, produce, func(f frame) bool { return out.add(ctx, f) })
	out.close() // from now on, only this goroutine writes
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	switch {
	case errors.Is(err, errDrained):
		out.retry(retryAfter)
	case err != nil && q.r.Context().Err() == nil && !errors.Is(err, errLeft):
		out.send(frame{event: eventProblem, data: s.problemFor(context.WithoutCancel(ctx), q.token, err)})
	}
	return nil
}

// produce calls a producer of events. It returns an error if the producer panics.
func (s *Server) produce(ctx context.Context, q *request, produce func(ctx context.Context, send func(frame) bool) error, send func(frame) bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.ErrorContext(ctx, "panic while sending events", "operation", q.op.id, "panic", p)
			err = errors.New("panic")
		}
	}()
	return produce(ctx, send)
}

// maySee returns an error if the token of a stream was revoked or rotated, or if it may no
// longer see the session of the stream: somebody can change the labels of a session.
func (s *Server) maySee(ctx context.Context, q *request, session string) error {
	err := s.isValid(q.token)
	if err != nil || session == "" || !q.token.isTenant() {
		return err
	}
	_, err = s.session(ctx, q, session)
	return err
}

// partSize is the size of the parts in which a large response is written.
const partSize = 16 << 10

// patientWriter writes to a client that may be slow. The client must read each part within a
// time. So a slow client gets a large response, and a client that reads nothing is
// disconnected.
type patientWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	each    time.Duration
}

// Write writes data in parts.
func (p *patientWriter) Write(data []byte) (n int, err error) {
	for len(data) > 0 && err == nil {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.each)) // ignore errors: some test writers have no deadlines
		var more int
		more, err = p.w.Write(data[:min(len(data), partSize)])
		n, data = n+more, data[more:]
	}
	return n, err //nolint:wrapcheck // only its existence matters
}

// errLeft is the cause of the end of a stream whose client has left or is too slow.
var errLeft = errors.New("the client has left")

// mostPending is how many bytes may wait to be written. Then the producer waits, and the
// watcher drops events that are not stored.
const mostPending = 32 << 10

// eventWriter writes server-sent events. Events that come while others are written go out
// together, with one system call.
type eventWriter struct {
	patientWriter

	cancel  context.CancelCauseFunc // ends the stream
	writing sync.Mutex              // held while something is written

	mu      sync.Mutex
	pending [][]byte      // the texts that wait to be written; streams share them, so they are not copied
	size    int           // the sum of their sizes
	room    chan struct{} // closed when pending is taken; nil if nobody waits
	busy    bool          // a goroutine writes what waits
	closed  bool
	ping    *time.Timer
	active  sync.WaitGroup // the goroutines that write
}

// add adds an event to those that wait. It returns false if ctx ends.
func (e *eventWriter) add(ctx context.Context, f frame) bool {
	text, ok := f.text()
	if !ok {
		return false
	}
	for {
		e.mu.Lock()
		if e.size == 0 || e.size+len(text) <= mostPending {
			e.pending, e.size = append(e.pending, text), e.size+len(text)
			if !e.busy {
				e.busy = true
				e.active.Go(e.writePending) // ends when nothing waits
			}
			e.mu.Unlock()
			return ctx.Err() == nil
		}
		if e.room == nil {
			e.room = make(chan struct{})
		}
		room := e.room
		e.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// writePending writes until nothing waits.
func (e *eventWriter) writePending() {
	for {
		e.mu.Lock()
		texts := e.pending
		e.pending, e.size = nil, 0
		if e.room != nil {
			close(e.room)
			e.room = nil
		}
		e.busy = len(texts) > 0
		e.mu.Unlock()
		if len(texts) == 0 {
			return
		}
		if !e.write(texts...) {
			e.cancel(errLeft)
		}
	}
}

// pings sends a comment now and then. If check returns an error, the stream ends with it.
func (e *eventWriter) pings(every time.Duration, check func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ping = time.AfterFunc(every, func() {
		e.mu.Lock()
		if e.closed {
			e.mu.Unlock()
			return
		}
		e.active.Add(1)
		e.mu.Unlock()
		defer e.active.Done()
		if err := check(); err != nil {
			e.cancel(err)
		} else if !e.comment("ping") {
			e.cancel(errLeft)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.closed {
			e.ping.Reset(every)
		}
	})
}

// close waits until nobody writes any more, and nobody will.
func (e *eventWriter) close() {
	e.mu.Lock()
	e.closed = true
	if e.ping != nil {
		e.ping.Stop()
	}
	e.mu.Unlock()
	e.active.Wait()
}

// write writes texts. It reports false if the client has left or is too slow.
func (e *eventWriter) write(texts ...[]byte) bool {
	e.writing.Lock()
	defer e.writing.Unlock()
	for _, text := range texts {
		if _, err := e.Write(text); err != nil {
			return false
		}
	}
	return e.control.Flush() == nil
}

func (e *eventWriter) comment(text string) bool { return e.write([]byte(": " + text + "\n\n")) }

func (e *eventWriter) retry(after time.Duration) bool {
	return e.write(fmt.Appendf(nil, "retry: %d\n\n", after.Milliseconds()))
}

func (e *eventWriter) send(f frame) bool {
	text, ok := f.text()
	return ok && e.write(text)
}

// text returns the lines of the event. It reports false if the data cannot be encoded.
func (f frame) text() ([]byte, bool) {
	if f.encoded != nil {
		return f.encoded, true
	}
	data, err := json.Marshal(f.data) // JSON has no line breaks, which would end a line of the stream
	if err != nil {
		return nil, false
	}
	text := make([]byte, 0, len(data)+len(f.id)+len(f.event)+24)
	if f.id != "" {
		text = append(append(append(text, "id: "...), f.id...), '\n')
	}
	text = append(append(append(text, "event: "...), f.event...), "\ndata: "...)
	return append(append(text, data...), "\n\n"...), true
}

type sessionEventsIn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	After   string `json:"after" in:"query" default:"0" jsonschema:"the id of the last event that you have, or the number of the last message; 0 for everything. The header Last-Event-ID wins"`
}

// validPosition matches the positions of events: see belay.Event.Position.
var validPosition = lazyregexp.New(`^\d{1,18}(-\d{1,9}|-end-\d{1,18}-[a-z_]{1,40})?$`)

func sessionEvents(ctx context.Context, s *Server, q *request, in *sessionEventsIn) error {
	info, err := s.session(ctx, q, in.Session)
	if err != nil {
		return err
	}
	after := in.After
	if last := q.r.Header.Get("Last-Event-ID"); last != "" {
		after = last
	}
	if !validPosition.MatchString(after) {
		return problem(http.StatusBadRequest, codes.CursorInvalid, "the position %.80q is invalid: use the id of an event", after)
	}
	id := info.ID // the stream keeps nothing else of info
	return s.streamEvents(ctx, q, id, func(ctx context.Context, send func(frame) bool) error {
		audience, leave := s.audiences.join(id)
		defer leave()
		for e, err := range s.host.Watch(ctx, &belay.WatchOptions{Session: id, After: after, Buffer: mostWaiting}) {
			if m, ok := errors.AsType[*belay.MissedError](err); ok {
				if !send(frame{event: eventMissed, data: api.Missed{Missed: m.Missed}}) {
					return nil
				}
				continue
			}
			if err != nil {
				return err
			}
			if !send(audience.frame(&e, q.token)) {
				return nil
			}
			if s.opts.Lag != nil && e.Seq > 0 { // events from the store have no number
				s.opts.Lag(time.Since(e.Time))
			}
		}
		return nil
	})
}

// sessionEventKinds returns the kinds of events in the stream of a session.
func sessionEventKinds() []string {
	var all []string
	for _, kind := range []belay.EventKind{
		belay.EventTurnStart, belay.EventTextDelta, belay.EventThinkingDelta, belay.EventModelResponse, belay.EventToolUse, belay.EventToolProgress, belay.EventToolUseResult,
		belay.EventTokenConsumption, belay.EventCompactionStart, belay.EventCompactionEnd, belay.EventHookInvoked, belay.EventSkillInvoked, belay.EventSubagentInvoked,
		belay.EventSubagentCompleted, belay.EventApprovalRequested, belay.EventApprovalDecided, belay.EventHookRun, belay.EventHookOutput, belay.EventHookFailed,
		belay.EventTurnContinued, belay.EventSteered, belay.EventError, belay.EventTurnEnd,
	} {
		all = append(all, string(kind))
	}
	return append(all, eventMissed, eventProblem)
}
