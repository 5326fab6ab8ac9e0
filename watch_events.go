package belay

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// Events gets the events of one or several agents: see [Options.Events]. A program that
// serves several agents watches all of them with one Events. Make one with [NewEvents].
type Events struct {
	shared bool         // it was made by NewEvents
	count  atomic.Int32 // a turn without watchers costs one atomic load

	mu      sync.Mutex
	all     []*watcher
	running map[string]int // how many turns run in this process, by session; only if shared
	share   *sharing       // the running call of Share, or nil
}

// NewEvents returns an Events for several agents.
func NewEvents() *Events { return &Events{shared: true, running: make(map[string]int)} }

// Watch yields the events of the agents, as [Agent.Watch] does. Pass the store that the
// agents use. Watch ends when ctx is done.
//
// With WatchOptions.After, Watch also yields the stored events of turns that other processes
// run, if the store is a [TurnStore]. Deltas and other events that are not stored come only
// from turns of this process, and of processes that [Events.Share] connects. Watch yields an
// error if the session is deleted, or if the store is closed or unreachable for 30 seconds.
func (es *Events) Watch(ctx context.Context, store Store, opts *WatchOptions) iter.Seq2[Event, error] {
	if opts != nil && opts.After != "" {
		return es.watchStored(ctx, nil, store, nil, opts)
	}
	return es.watch(ctx, nil, nil, opts)
}

// enter notes that a turn of the session runs in this process, and leave that it has ended.
// The turn calls leave after it has emitted its last event.
func (es *Events) enter(session string) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.running[session]++
	if es.share != nil {
		es.share.begin(session)
	}
}

func (es *Events) leave(session string) {
	es.mu.Lock()
	var relay *watcher
	if es.running[session]--; es.running[session] == 0 {
		delete(es.running, session)
		if es.share != nil {
			relay = es.share.relays[session]
			delete(es.share.relays, session)
		}
	}
	es.mu.Unlock()
	if relay != nil {
		es.remove(relay)
	}
}

// runs reports whether a turn of the session runs in this process.
func (es *Events) runs(session string) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	return es.running[session] > 0
}

// followPatience is how long the store may be unreachable before a watcher gets an error.
// followPause is the time between two attempts.
const (
	followPatience = 30 * time.Second
	followPause    = 250 * time.Millisecond
)

// follow wakes the watcher when any process changes the session in the store. Call the
// returned function to end this.
func (s *storedWatch) follow(store TurnStore, w *watcher) (stop func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.failed = make(chan error, 1)
	stopFollowing := s.source.addFollower(w)
	var following sync.WaitGroup
	following.Go(func() { // ends when stop is called, or with an error
		var since time.Time // when the store became unreachable; zero: it is reachable
		for {
			var failure error
			for _, err := range store.Changes(ctx, s.session) {
				if failure = err; err != nil {
					break
				}
				since = time.Time{}
				w.changed.Store(true)
				w.rouse()
			}
			if ctx.Err() != nil {
				return
			}
			if since.IsZero() {
				since = time.Now()
			}
			if errors.Is(failure, ErrNotFound) || errors.Is(failure, ErrClosed) || time.Since(since) > followPatience {
				s.failed <- failure
				return
			}
			select {
			case <-time.After(followPause):
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		stopFollowing()
		following.Wait()
	}
}
