package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/internal/record"
)

// Changes yields the current state of a session, and then the new state after a change. If
// the session changes several times quickly, Changes may yield only the last state. It sees
// changes by this process at once, and changes by other processes within Options.Poll.
//
// Thousands of callers may wait at the same time. So they wait in functions with small
// frames: the stack of a goroutine that waits is then 4 KiB, and not 8 or 16.
func (s *Store) Changes(ctx context.Context, session string) iter.Seq2[belay.SessionInfo, error] {
	return func(yield func(belay.SessionInfo, error) bool) {
		if err := s.changes(ctx, session, yield); err != nil {
			s.yieldFailure(session, err, yield)
		}
	}
}

// changesPause is the shortest time between two reads. A turn commits several times within
// milliseconds, and Changes reports this as one change.
const changesPause = 10 * time.Millisecond

func (s *Store) changes(ctx context.Context, session string, yield func(belay.SessionInfo, error) bool) error {
	w, stop := s.watches.add(s, session)
	defer stop()
	seen := new(record.Seen)
	for {
		changed := w.changed.wait() // subscribe before reading, so that no change is missed
		told, left, err := s.yieldChange(ctx, session, seen, yield)
		switch {
		case err != nil || left:
			return err
		case told:
			err = s.await(ctx, nil, changesPause)
		default:
			err = s.awaitSignal(ctx, changed)
		}
		if err != nil {
			return err
		}
	}
}

// awaitSignal waits for a signal. It returns an error if ctx ends or the store is closed.
func (s *Store) awaitSignal(ctx context.Context, signal <-chan struct{}) error {
	select {
	case <-signal:
		return nil
	case <-s.closed:
	case <-ctx.Done():
	}
	return s.whyEnded(ctx)
}

//go:noinline
func (s *Store) whyEnded(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%s: %w", s.path, belay.ErrClosed)
}

// yieldFailure and yieldChange have large frames, because they pass a SessionInfo. They must
// not become a part of their callers: see Changes.

//go:noinline
func (s *Store) yieldFailure(session string, err error, yield func(belay.SessionInfo, error) bool) {
	yield(belay.SessionInfo{}, fmt.Errorf("changes of session %q: %w", session, s.explain(err)))
}

// yieldChange reads a session and yields it, unless the session is as it was seen. left
// reports whether the consumer wants no more.
//
//go:noinline
func (s *Store) yieldChange(ctx context.Context, session string, seen *record.Seen, yield func(belay.SessionInfo, error) bool) (told, left bool, err error) {
	info, err := s.changedInfo(ctx, session, seen)
	if err != nil || info == nil {
		return false, false, err
	}
	return true, !yield(*info, nil), nil
}

// changedInfo reads a session. It returns nil if the session is as it was seen.
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

const (
	// lookBack is how long a transaction of another process may take from the time that it
	// gives to a session until it is stored.
	lookBack = 5 * time.Second
	// lookAtAll is how often look reads all watched sessions, as a multiple of Options.Poll.
	// So it finds what the time of the last change does not show: a session that another
	// process has deleted, and a change after the clock was set back.
	lookAtAll = 8
	// lookAtOnce is how many sessions one query reads.
	lookAtOnce = 500
)

// look wakes the watchers of sessions that other processes have changed. It usually reads
// only sessions that were changed in the last seconds.
func (ws *watches) look(s *Store, stop <-chan struct{}) {
	defer s.working.Done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	var known, all map[string]record.Seen
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-stop:
			return
		case <-s.closed:
			return
		}
		rows, err := record.ChangedSince(ctx, s.reader, s.now().Add(-lookBack))
		known = ws.wakeChanged(known, rows)
		if err == nil && n%lookAtAll == 0 {
			all, err = ws.wakeAllChanged(ctx, s, all)
		}
		if err != nil { // the watchers find the error
			ws.wakeAll()
		}
	}
}

// wakeChanged wakes the watchers of the sessions whose states are not known. It returns the
// states, which are then known.
func (ws *watches) wakeChanged(known map[string]record.Seen, rows []record.Changed) map[string]record.Seen {
	states := make(map[string]record.Seen, len(rows))
	for _, row := range rows {
		if states[row.ID] = row.Seen; known[row.ID] != row.Seen {
			ws.wake(row.ID)
		}
	}
	return states
}

// wakeAllChanged is wakeChanged for all watched sessions. It also wakes the watchers of
// sessions that do not exist any more.
func (ws *watches) wakeAllChanged(ctx context.Context, s *Store, known map[string]record.Seen) (map[string]record.Seen, error) {
	ws.mu.Lock()
	ids := slices.Collect(maps.Keys(ws.sessions))
	ws.mu.Unlock()
	var rows []record.Changed
	for some := range slices.Chunk(ids, lookAtOnce) {
		found, err := record.StatesOf(ctx, s.reader, some)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	states := ws.wakeChanged(known, rows)
	for _, id := range ids {
		if _, exists := states[id]; !exists {
			ws.wake(id)
		}
	}
	return states, nil
}
