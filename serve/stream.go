package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/serve/api"
)

// frame is one server-sent event.
type frame struct {
	id    string // empty: the client keeps the last id
	event string
	data  any
}

const (
	// writeTimeout is how long a client may take to read one event. A client that takes longer
	// is disconnected. It can continue with the last id that it has.
	writeTimeout = 10 * time.Second
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

// streamEvents sends events until the client leaves, the token is revoked or the server
// stops. produce calls send for each event, on another goroutine, and must end when its
// context ends or send returns false.
func (s *Server) streamEvents(ctx context.Context, q *request, produce func(ctx context.Context, send func(frame) bool) error) error {
	if s.stopping() {
		p := problem(http.StatusServiceUnavailable, codes.ServerDraining, "the server is stopping: connect again")
		p.retry = int(retryAfter.Seconds())
		return p
	}
	ctx, cancel := context.WithCancel(ctx)
	frames, done := make(chan frame), make(chan error, 1)
	go func() { // ends before this function returns
		var err error
		defer func() {
			if p := recover(); p != nil {
				s.log.ErrorContext(ctx, "panic while sending events", "operation", q.op.id, "panic", p)
				err = errors.New("panic")
			}
			done <- err
		}()
		err = produce(ctx, func(f frame) bool {
			select {
			case frames <- f:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	defer func() {
		cancel()
		<-done
	}()
	out := &eventWriter{w: q.w, control: http.NewResponseController(q.w)}
	q.w.Header().Set("Content-Type", "text/event-stream")
	q.w.Header().Set("X-Accel-Buffering", "no") // nginx must not hold events back
	q.w.WriteHeader(http.StatusOK)
	if !out.comment("connected") {
		return nil
	}
	ping := time.NewTicker(s.opts.Ping)
	defer ping.Stop()
	for {
		select {
		case f := <-frames:
			if !out.send(f) {
				return nil
			}
		case err := <-done:
			done <- nil // for the deferred function
			if err != nil && ctx.Err() == nil {
				out.send(frame{event: eventProblem, data: s.problemOf(ctx, err)})
			}
			return nil
		case <-ping.C:
			if !out.comment("ping") {
				return nil
			}
			if known, err := s.opts.Tokens.named(q.token.Name); err != nil || known.Hash != q.token.Hash {
				out.send(frame{event: eventProblem, data: problem(http.StatusUnauthorized, codes.AuthRequired, "the token was revoked or rotated")})
				return nil
			}
		case <-s.draining:
			out.retry(retryAfter)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// eventWriter writes server-sent events. Its methods report false if the client has left or
// is too slow.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (e *eventWriter) write(text string) bool {
	_ = e.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // ignore errors: some test writers have no deadlines
	if _, err := e.w.Write([]byte(text)); err != nil {
		return false
	}
	return e.control.Flush() == nil
}

func (e *eventWriter) comment(text string) bool { return e.write(": " + text + "\n\n") }

func (e *eventWriter) retry(after time.Duration) bool {
	return e.write(fmt.Sprintf("retry: %d\n\n", after.Milliseconds()))
}

func (e *eventWriter) send(f frame) bool {
	data, err := json.Marshal(f.data) // JSON has no line breaks, which would end a line of the stream
	if err != nil {
		return false
	}
	text := ""
	if f.id != "" {
		text = "id: " + f.id + "\n"
	}
	return e.write(text + "event: " + f.event + "\ndata: " + string(data) + "\n\n")
}

type sessionEventsIn struct {
	Session string `json:"session" in:"path" required:"true" jsonschema:"the id of the session"`
	After   string `json:"after" in:"query" default:"0" jsonschema:"the id of the last event that you have, or the number of the last message; 0 for everything. The header Last-Event-ID wins"`
}

// validPosition matches the positions of events: see belay.Event.Position.
var validPosition = regexp.MustCompile(`^\d{1,18}(-\d{1,9}|-end-\d{1,18}-[a-z_]{1,40})?$`)

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
	return s.streamEvents(ctx, q, func(ctx context.Context, send func(frame) bool) error {
		for e, err := range s.host.Watch(ctx, &belay.WatchOptions{Session: info.ID, After: after, Buffer: mostWaiting}) {
			if m, ok := errors.AsType[*belay.MissedError](err); ok {
				if !send(frame{event: eventMissed, data: api.Missed{Missed: m.Missed}}) {
					return nil
				}
				continue
			}
			if err != nil {
				return err
			}
			if !send(frame{id: e.Position, event: string(e.Kind), data: e}) {
				return nil
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
		belay.EventTurnContinued, belay.EventError, belay.EventTurnEnd,
	} {
		all = append(all, string(kind))
	}
	return append(all, eventMissed, eventProblem)
}
