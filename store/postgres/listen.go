package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A notification only wakes waiters, which then read the tables. Waiters also poll, so a
// lost notification only causes a delay. The store sends a notification after the
// transaction. A notification inside a transaction would make all transactions with
// notifications wait for each other.

// These are the channels of notifications. The payload is the id of a session, or empty for
// all sessions.
const (
	turnChannel    = "belay_turns"
	sessionChannel = "belay_sessions"
)

// longestPayload is the maximum size of a payload in bytes. The server's limit is higher.
const longestPayload = 4096

// ring wakes waiters in all processes. It does not wait for the server's disk, because a
// notification does not have to be durable.
func (s *Store) ring(ctx context.Context, channel, payload string) {
	if len(payload) > longestPayload {
		payload = ""
	}
	s.ear.hear(s, channel, payload) // waiters in this process do not need the server
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	const notify = "SELECT pg_notify($1, $2) FROM (SELECT set_config('synchronous_commit', 'off', true)) AS quick"
	if _, err := s.pool.Exec(ctx, notify, channel, payload); err != nil {
		s.opts.Logger.DebugContext(ctx, "cannot send a notification: other processes will see the change later", "store", s.name, "channel", channel, "error", s.explain(err))
	}
}

// ear receives notifications for the waiters in this process.
type ear struct {
	begin sync.Once

	mu        sync.Mutex
	sessions  map[string]*watched
	receivers map[chan string]struct{} // see Store.Broadcasts
}

// watched is a session with waiters.
type watched struct {
	changed broadcast
	count   int
}

// watch returns a signal for changes of a session. Call stop when the signal is no longer
// needed.
func (e *ear) watch(session string) (w *watched, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sessions == nil {
		e.sessions = make(map[string]*watched)
	}
	w = e.sessions[session]
	if w == nil {
		w = &watched{}
		e.sessions[session] = w
	}
	w.count++
	return w, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.count--; w.count == 0 {
			delete(e.sessions, session)
		}
	}
}

// hear wakes the waiters of a channel and payload.
func (e *ear) hear(s *Store, channel, payload string) {
	if channel == turnChannel {
		s.due.broadcast()
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for session, w := range e.sessions {
		if payload == "" || payload == session {
			w.changed.broadcast()
		}
	}
}

// listen starts the goroutine that receives notifications. Only the first call has an
// effect.
func (s *Store) listen() {
	s.ear.begin.Do(func() {
		if s.begin() {
			go s.hearing() // Close ends it and waits for it
		}
	})
}

// deafFor is the pause before a lost connection is opened again.
const deafFor = 250 * time.Millisecond

// hearing receives notifications on its own connection until Close. While the connection is
// lost, notifications are lost. So hearing wakes all waiters after it has reconnected.
func (s *Store) hearing() {
	defer s.working.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan struct{})
	defer close(stop)
	go func() { // ends with hearing
		select {
		case <-s.closed:
			cancel()
		case <-stop:
		}
	}()
	for ctx.Err() == nil {
		if err := s.hearUntilCut(ctx); err != nil && ctx.Err() == nil {
			s.opts.Logger.DebugContext(ctx, "cannot receive notifications: this process will see changes later", "store", s.name, "error", s.explain(err))
			_ = s.await(ctx, nil, deafFor) // the loop checks whether the store is closed
		}
	}
}

func (s *Store) hearUntilCut(ctx context.Context) error {
	conn, done, err := s.apart(ctx)
	if err != nil {
		return err
	}
	defer done()
	var schema string
	if err := s.soon(ctx, func(ctx context.Context) error { return conn.QueryRow(ctx, "SELECT current_schema()").Scan(&schema) }); err != nil {
		return err
	}
	for _, channel := range []string{busChannel, turnChannel, sessionChannel} {
		if err := s.soon(ctx, func(ctx context.Context) error {
			_, err := conn.Exec(ctx, "LISTEN "+channel)
			return err //nolint:wrapcheck // it is logged
		}); err != nil {
			return err
		}
	}
	s.ear.hear(s, turnChannel, "")
	s.ear.hear(s, sessionChannel, "")
	for {
		var heard *pgconn.Notification
		err := s.soon(ctx, func(ctx context.Context) (err error) {
			heard, err = conn.WaitForNotification(ctx)
			return err //nolint:wrapcheck // likewise
		})
		switch {
		case err == nil && heard.Channel == busChannel:
			s.ear.pass(s, schema, heard.Payload)
		case err == nil:
			s.ear.hear(s, heard.Channel, heard.Payload)
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		default: // no notification arrived: check the connection
			if err := s.soon(ctx, conn.Ping); err != nil {
				return err
			}
		}
	}
}

// soon calls do with half of Options.Timeout as its timeout.
func (s *Store) soon(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout/2)
	defer cancel()
	return do(ctx)
}
