package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Changes yields the current state of a session, and then the new state after a change. If
// the session changes several times quickly, Changes may yield only the last state. It sees
// changes by this process at once, and changes by other processes within Options.Poll.
func (s *Store) Changes(ctx context.Context, session string) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		if err := s.changes(ctx, session, func(info belay.SessionInfo) bool { return yield(info, nil) }); err != nil {
			yield(belay.SessionInfo{}, fmt.Errorf("changes of session %q: %w", session, s.explain(err)))
		}
	}
}

// changesPoll is how often Changes reads a session that did not change, as a multiple of
// Options.Poll. It finds what watches.look cannot see: a session that another process has
// deleted, and a change after the clock was set back.
const changesPoll = 8

// changesPause is the shortest time between two reads. A turn commits several times within
// milliseconds, and Changes reports this as one change.
const changesPause = 10 * time.Millisecond

func (s *Store) changes(ctx context.Context, session string, yield func(belay.SessionInfo) bool) error {
	w, stop := s.watches.add(s, session)
	defer stop()
	var seen record.Seen
	for {
		changed := w.changed.wait() // subscribe before reading, so that no change is missed
		info, err := s.changedInfo(ctx, session, &seen)
		pause := changesPause
		switch {
		case err != nil:
			return err
		case info == nil:
			pause = changesPoll * s.opts.Poll
		case !yield(*info):
			return nil
		default:
			changed = nil
		}
		if err := s.await(ctx, changed, pause); err != nil {
			return err
		}
	}
}

// changedInfo reads a session. It returns nil if the session is as it was seen. It is a
// function of its own, so that a caller of Changes that waits needs only a small stack.
func (s *Store) changedInfo(ctx context.Context, session string, seen *record.Seen) (*belay.SessionInfo, error) {
	row, err := s.read.SessionRow(ctx, session)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, belay.ErrNotFound
	case err != nil:
		return nil, record.Cause(ctx, err)
	}
	now := record.SeenOf(row)
	if now == *seen {
		return nil, nil //nolint:nilnil // nothing has changed
	}
	*seen = now
	info, err := s.info(ctx, s.read, row, map[string]bool{"": false})
	return &info, err
}

// watches are the sessions that callers of Changes watch. One goroutine looks for the changes
// of other processes, however many sessions are watched.
type watches struct {
	mu       sync.Mutex
	sessions map[string]*watched
	stop     chan struct{} // ends the goroutine; nil if it does not run
}

// watched is a session with callers of Changes.
type watched struct {
	changed broadcast
	count   int
}

// add returns the signal for changes of a session. Call done when it is no longer needed.
func (ws *watches) add(s *Store, session string) (w *watched, done func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.sessions == nil {
		ws.sessions = make(map[string]*watched)
	}
	if w = ws.sessions[session]; w == nil {
		w = &watched{}
		ws.sessions[session] = w
	}
	w.count++
	if ws.stop == nil && s.begin() {
		ws.stop = make(chan struct{})
		go ws.look(s, ws.stop) // ends when the last caller leaves; Close waits for it
	}
	return w, func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		if w.count--; w.count == 0 {
			delete(ws.sessions, session)
		}
		if len(ws.sessions) == 0 && ws.stop != nil {
			close(ws.stop)
			ws.stop = nil
		}
	}
}

// wake tells the watchers of a session that it may have changed.
func (ws *watches) wake(session string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.sessions[session]; w != nil {
		w.changed.broadcast()
	}
}

// wakeAll tells all watchers to look.
func (ws *watches) wakeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.sessions {
		w.changed.broadcast()
	}
}

// lookBack is how long a transaction of another process may take from the time that it gives
// to a session until it is stored.
const lookBack = 5 * time.Second

// look wakes the watchers of sessions that other processes have changed. It reads only
// sessions that were changed in the last seconds.
func (ws *watches) look(s *Store, stop <-chan struct{}) {
	defer s.working.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	var known map[string]record.Seen
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		case <-s.closed:
			return
		}
		rows, err := record.ChangedSince(ctx, s.reader, s.now().Add(-lookBack))
		if err != nil { // the watchers find the error
			ws.wakeAll()
			continue
		}
		seen := make(map[string]record.Seen, len(rows))
		for _, row := range rows {
			if seen[row.ID] = row.Seen; known[row.ID] != row.Seen {
				ws.wake(row.ID)
			}
		}
		known = seen
	}
}
