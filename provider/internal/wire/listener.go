package wire

import (
	"errors"

	"github.com/belay-run/belay"
)

// ErrStopped reports that the consumer of a stream stopped reading it.
var ErrStopped = errors.New("the consumer stopped reading the stream")

// Listener passes the chunks of one stream to its consumer. After the consumer has stopped
// it passes on nothing. A Listener is for one goroutine.
type Listener struct {
	yield   func(belay.Chunk, error) bool
	stopped bool
	pending bool // data was read, and no chunk has followed yet
}

// NewListener returns a listener that calls yield.
func NewListener(yield func(belay.Chunk, error) bool) *Listener { return &Listener{yield: yield} }

// Send passes on a chunk or an error, and reports whether the consumer wants more.
func (l *Listener) Send(chunk belay.Chunk, err error) bool {
	l.pending = false
	l.stopped = l.stopped || !l.yield(chunk, err)
	return !l.stopped
}
