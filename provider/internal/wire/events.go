package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// maxEvent is the largest allowed size of an event, in bytes.
const maxEvent = 64 << 20

// ErrEventTooLong means that an event of a stream is larger than maxEvent.
var ErrEventTooLong = fmt.Errorf("an event is larger than %d MiB", maxEvent>>20)

// Event is a server-sent event. It is valid until the next call of Next.
type Event struct {
	// Type is the event's name, which is often empty.
	Type string
	Data []byte
	// Stray is text in the stream that is not an event. It may be an error message of the
	// service or a proxy. If Stray is set, the other fields are empty.
	Stray []byte
}

// Events reads a stream of server-sent events.
type Events struct {
	r     *bufio.Reader
	kind  []byte
	types map[string]string // the event names seen so far, so that each is allocated once
	line  []byte
	begun bool
	data  []byte
	stray []byte
}

// NewEvents returns an [Events] that reads from r.
func NewEvents(r io.Reader) *Events {
	return &Events{r: bufio.NewReaderSize(r, 16<<10), types: map[string]string{}}
}

// Next returns the next event. If the stream ends in the middle of an event, Next drops that
// event. At the end of the stream the error is [io.EOF].
func (e *Events) Next() (Event, error) {
	e.kind, e.data, e.stray = e.kind[:0], e.data[:0], e.stray[:0]
	for {
		line, err := e.readLine()
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		field, value, isField := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) || len(e.data) > 0 || string(field) == "data" {
				return Event{}, err
			}
			if e.stray = append(e.stray, line...); len(e.stray) == 0 {
				return Event{}, err
			}
			return Event{Stray: e.stray}, nil
		case len(line) == 0 && len(e.data) > 0:
			return Event{Type: e.typeName(), Data: e.data}, nil
		case len(line) == 0 && len(e.stray) > 0:
			return Event{Stray: e.stray}, nil
		case len(line) == 0:
			e.kind = e.kind[:0]
		case string(field) == "data":
			if len(e.data) > 0 {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		case string(field) == "event":
			e.kind = append(e.kind[:0], value...)
		case string(field) == "id" || string(field) == "retry" || isField && isWord(field): // this package does not use these fields
		default:
			e.stray = append(append(e.stray, line...), '\n')
		}
		if len(e.data)+len(e.stray)+len(e.kind) > maxEvent {
			return Event{}, ErrEventTooLong
		}
	}
}

// isWord reports whether a text may be the name of a field. An empty name begins a
// comment.
func isWord(name []byte) bool {
	for _, c := range name {
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// maxTypes limits the size of Events.types.
const maxTypes = 100

func (e *Events) typeName() string {
	if len(e.kind) == 0 {
		return ""
	}
	name, known := e.types[string(e.kind)]
	if !known {
		name = string(e.kind)
		if len(e.types) < maxTypes {
			e.types[name] = name
		}
	}
	return name
}

// readLine reads a line and removes the line ending. With an error it also returns the
// beginning of the line.
func (e *Events) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		piece, err := e.r.ReadSlice('\n')
		if err == nil && len(e.line) == 0 {
			return trimEnd(piece), nil // the usual case: no copy
		}
		e.line = append(e.line, piece...)
		switch {
		case err == nil:
			return trimEnd(e.line), nil
		case len(e.line) > maxEvent:
			return nil, ErrEventTooLong
		case !errors.Is(err, bufio.ErrBufferFull):
			return e.line, err //nolint:wrapcheck // the caller adds the context
		}
	}
}

func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// Drain reads the stream to its end, so that the connection can be reused. If the end does
// not arrive within [DrainTime], Drain calls cancel. cancel must make reading fail.
func (e *Events) Drain(cancel func()) {
	timer := time.AfterFunc(DrainTime, cancel)
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, e.r)
}
