package wire

import (
	"errors"

	"github.com/belay-run/belay"
)

// ErrStopped means that the consumer of a stream stopped reading the stream.
var ErrStopped = errors.New("the consumer stopped reading the stream")

// Listener passes the chunks of one stream to the consumer. It sends nothing after the
// consumer has stopped. Only one goroutine may use a Listener.
type Listener struct {
	yield   func(belay.Chunk, error) bool
	stopped bool
	pending bool // data was read since the last chunk was sent
}

// NewListener returns a listener that calls yield.
func NewListener(yield func(belay.Chunk, error) bool) *Listener { return &Listener{yield: yield} }

// Send passes on a chunk or an error, and reports whether the consumer wants more.
func (l *Listener) Send(chunk belay.Chunk, err error) bool {
	l.pending = false
	l.stopped = l.stopped || !l.yield(chunk, err)
	return !l.stopped
}
