package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay/serve/api"
)

// frame is one server-sent event.
type frame struct {
	id    string // the last id of the stream
	event string
	data  []byte
}

// frameConnected is the event of a frame that the client makes when it has connected.
const frameConnected = ""

const (
	// idle is how long a stream may be silent. The server sends a comment every 15 seconds,
	// so a longer silence means that the connection is dead.
	idle = time.Minute
	// retryDefault is the pause before a stream connects again, unless the server names one.
	retryDefault = time.Second
)

// errIdle is the cause of a connection that was closed because it was silent.
var errIdle = errors.New("the server was silent for a minute")

// frames yields the events of a stream, and connects again when the connection is lost. after
// is the id of the last known event. It ends with an error that connecting again cannot mend,
// or when ctx is done.
func (c *Client) frames(ctx context.Context, send *outgoing, after string) iter.Seq2[frame, error] {
	return func(yield func(frame, error) bool) {
		s := &stream{c: c, request: send, last: after, retry: retryDefault, yield: yield}
		var since time.Time // when the connection was lost; zero: there was one in the last try
		for try := 1; ; try++ {
			err := s.read(ctx)
			switch {
			case s.left || ctx.Err() != nil:
				return
			case s.got || s.connected && err == nil:
				try, since = 1, time.Time{}
			}
			if since.IsZero() {
				since = time.Now()
			}
			if !s.mayRetry(err, try, time.Since(since)) {
				yield(frame{}, err)
				return
			}
			pause := pauseOf(try, s.retry)
			if p, ok := errors.AsType[*api.Problem](err); ok {
				pause = cmp.Or(p.RetryAfter, pause)
			}
			if !rest(ctx, pause) {
				return
			}
		}
	}
}

// stream is one call of frames.
type stream struct {
	c       *Client
	request *outgoing
	yield   func(frame, error) bool

	last      string        // the id of the last event
	retry     time.Duration // the pause that the server asks for
	ever      bool          // the server has answered once
	connected bool          // the server has answered in the last try
	got       bool          // the last try has got an event
	left      bool          // the consumer has left
}

// mayRetry reports whether to connect again after an error.
func (s *stream) mayRetry(err error, try int, failing time.Duration) bool {
	if err == nil { // the server has ended the stream
		return true
	}
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return (busy(p) || p.Status >= http.StatusInternalServerError) && failing < s.c.reconnect && p.RetryAfter <= longestPause
	}
	if _, lost := errors.AsType[*lostError](err); !lost {
		return false
	}
	return failing < s.c.reconnect && (s.ever || try < mostTries) // a server that never answered does not run, or is elsewhere
}

// read connects, and yields events until the connection ends.
func (s *stream) read(ctx context.Context) error {
	s.connected, s.got = false, false
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(idle, func() { cancel(errIdle) })
	defer silent.Stop()
	header := http.Header{"Accept": {"text/event-stream"}}
	if s.last != "" {
		header.Set("Last-Event-ID", s.last)
	}
	response, err := s.c.send(ctx, s.request, header)
	if err != nil {
		return s.lost(ctx, err)
	}
	defer func() { _ = response.Body.Close() }() // ignore errors: the stream has ended
	if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "text/event-stream" {
		return fmt.Errorf("%s: the response is not a stream of events: is %s the address of a Belay server?", s.request.path, s.c.base)
	}
	s.ever, s.connected = true, true
	if s.left = !s.yield(frame{event: frameConnected}, nil); s.left {
		return nil
	}
	lines := bufio.NewReader(response.Body)
	next := frame{id: s.last}
	for {
		line, err := readLine(lines, mostBody-len(next.data))
		if errors.Is(err, io.EOF) { // the server has ended the stream
			return nil
		}
		if err != nil {
			return s.lost(ctx, err)
		}
		silent.Reset(idle)
		if len(line) > 0 {
			s.field(line, &next)
			continue
		}
		complete := next
		if next = (frame{id: next.id}); complete.data == nil { // nothing is said
			continue
		}
		s.last = complete.id
		if err := s.dispatch(complete); err != nil || s.left {
			return err
		}
	}
}

// field adds a line of an event to the event.
func (s *stream) field(line []byte, to *frame) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "id":
		if !bytes.ContainsRune(value, 0) {
			to.id = string(value)
		}
	case "event":
		to.event = string(value)
	case "data":
		if to.data != nil {
			to.data = append(to.data, '\n')
		}
		if to.data = append(to.data, value...); to.data == nil {
			to.data = []byte{}
		}
	case "retry":
		if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
			s.retry = min(max(time.Duration(min(ms, 1<<20))*time.Millisecond, firstPause), longestPause)
		}
	}
}

// lost makes a lostError of an error that a broken connection causes.
func (s *stream) lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		return &lostError{fmt.Errorf("%s: %w", s.request.path, cause)}
	}
	if _, known := errors.AsType[*api.Problem](err); known || errors.Is(err, errLongLine) {
		return err
	}
	if _, known := errors.AsType[*lostError](err); known {
		return err
	}
	return &lostError{fmt.Errorf("%s: %w", s.request.path, err)}
}

// dispatch yields an event, or returns the error that the server sends at the end.
func (s *stream) dispatch(f frame) error {
	if f.event == api.EventProblem {
		p := new(api.Problem)
		if err := json.Unmarshal(f.data, p); err != nil {
			return fmt.Errorf("cannot decode the event %q: %w", f.event, err)
		}
		return p
	}
	s.got = true
	f.event = cmp.Or(f.event, "message")
	s.left = !s.yield(f, nil)
	return nil
}

var errLongLine = errors.New("an event is too large")

// readLine reads a line without its end. most is its maximum length.
func readLine(from *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		if len(line)+len(part) > most {
			return nil, fmt.Errorf("%w: it has more than %d bytes", errLongLine, mostBody)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, fmt.Errorf("read the stream: %w", err)
		}
		return []byte(strings.TrimRight(string(line), "\r\n")), nil
	}
}
