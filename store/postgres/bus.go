package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// busChannel is the channel of messages between processes: see belay.BusStore. The payload is
// the schema of the tables, the id of the sender, and the message.
const busChannel = "belay_bus"

// busRoom is how many messages may wait for a receiver. Later messages are dropped.
const busRoom = 256

var _ belay.BusStore = (*Store)(nil)

// Broadcast sends a message to the other processes that use the database. It costs one round
// trip, and no write to the disk.
func (s *Store) Broadcast(ctx context.Context, message string) error {
	if len(message) > belay.MostBroadcast || !utf8.ValidString(message) || strings.Contains(message, "\x00") {
		return fmt.Errorf("broadcast: the message must be UTF-8 text without zero bytes, of at most %d bytes", belay.MostBroadcast)
	}
	const notify = "SELECT pg_notify($1, current_schema() || ' ' || $2) FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quick"
	if _, err := s.pool.Exec(ctx, notify, busChannel, s.id+" "+message); err != nil {
		return fmt.Errorf("broadcast: %w", s.explain(err))
	}
	return nil
}

// Broadcasts yields the messages of other processes. While the connection that receives them
// is lost, messages are lost.
func (s *Store) Broadcasts(ctx context.Context) iter.Seq[string] {
	messages, stop := s.ear.receive()
	s.listen()
	return func(yield func(string) bool) {
		defer stop()
		for {
			select {
			case message := <-messages:
				if !yield(message) {
					return
				}
			case <-s.closed:
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// receive returns a channel that gets the messages of other processes. Call stop when it is
// no longer needed.
func (e *ear) receive() (messages <-chan string, stop func()) {
	to := make(chan string, busRoom)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.receivers == nil {
		e.receivers = make(map[chan string]struct{})
	}
	e.receivers[to] = struct{}{}
	return to, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.receivers, to)
	}
}

// pass gives a message of another process to the receivers. It ignores messages of stores
// in other schemas of the database.
func (e *ear) pass(s *Store, schema, payload string) {
	from, rest, _ := strings.Cut(payload, " ")
	sender, message, ok := strings.Cut(rest, " ")
	if !ok || from != schema || sender == s.id {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for to := range e.receivers {
		select {
		case to <- message:
		default: // the receiver is too slow
		}
	}
}
