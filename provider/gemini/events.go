package gemini

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent is the largest event that is read, in bytes.
const maxEvent = 64 << 20

var errTooLarge = fmt.Errorf("an event is larger than %d MiB", maxEvent>>20)

// events reads a stream of events.
type events struct {
	r     *bufio.Reader
	line  []byte
	data  []byte
	stray []byte
}

func newEvents(r io.Reader) *events { return &events{r: bufio.NewReaderSize(r, 16<<10)} }

// next returns the data of the next event; an incomplete event does not count. Text in the
// stream that is not an event is returned as stray: it may be an error that the service, or a
// proxy, did not send as an event. Both are valid until the next call.
func (e *events) next() (data, stray []byte, err error) {
	e.data, e.stray = e.data[:0], e.stray[:0]
	for {
		line, err := e.readLine()
		field, value, isField := bytes.Cut(line, []byte(":"))
		switch {
		case err != nil:
			if !errors.Is(err, io.EOF) || len(e.data) > 0 || string(field) == "data" {
				return nil, nil, err
			}
			if e.stray = append(e.stray, line...); len(e.stray) == 0 {
				return nil, nil, err
			}
			return nil, e.stray, nil
		case len(line) == 0 && len(e.data) > 0:
			return e.data, nil, nil
		case len(line) == 0 && len(e.stray) > 0:
			return nil, e.stray, nil
		case len(line) == 0:
		case string(field) == "data" && len(e.stray) == 0:
			if len(e.data) > 0 {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		case isField && (len(field) == 0 || string(field) == "event" || string(field) == "id" || string(field) == "retry"):
		default:
			e.stray = append(append(e.stray, line...), '\n')
		}
		if len(e.data)+len(e.stray) > maxEvent {
			return nil, nil, errTooLarge
		}
	}
}

// readLine reads a line, without its line ending. With an error it also returns what it has
// read of the line.
func (e *events) readLine() ([]byte, error) {
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
			return nil, errTooLarge
		case !errors.Is(err, bufio.ErrBufferFull):
			return e.line, err //nolint:wrapcheck // the caller adds the context
		}
	}
}

// trimEnd removes the line ending.
func trimEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
