package sqlite

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

var _ belay.BusStore = (*Store)(nil)

// Broadcast sends a message to the other processes on this machine that receive messages for
// the same file. It writes nothing to the file. On Windows it does nothing.
func (s *Store) Broadcast(_ context.Context, message string) error {
	if len(message) > belay.MostBroadcast || !utf8.ValidString(message) || strings.Contains(message, "\x00") {
		return fmt.Errorf("broadcast: the message must be UTF-8 text without zero bytes, of at most %d bytes", belay.MostBroadcast)
	}
	return s.sendAll(message)
}

// Broadcasts yields the messages of other processes on this machine. On Windows, and if the
// path of the file is too long for a socket, it yields none.
func (s *Store) Broadcasts(ctx context.Context) iter.Seq[string] {
	box, err := s.openMailbox()
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "cannot receive messages of other processes: their live events are not shown here", "store", s.path, "error", err)
	}
	return func(yield func(string) bool) {
		if err != nil || box == nil {
			select {
			case <-s.closed:
			case <-ctx.Done():
			}
			return
		}
		if !s.begin() {
			box.close()
			return
		}
		defer s.working.Done()
		defer box.close()
		stop := make(chan struct{})
		defer close(stop)
		go func() { // ends with the loop
			select {
			case <-s.closed:
			case <-ctx.Done():
			case <-stop:
			}
			box.close() // also ends a waiting receive
		}()
		for {
			message, ok := box.receive()
			if !ok || ctx.Err() != nil || !yield(message) {
				return
			}
		}
	}
}
