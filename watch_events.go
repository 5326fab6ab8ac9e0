package belay

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
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
	follows map[followKey]*follower
}

// NewEvents returns an Events for several agents.
func NewEvents() *Events { return &Events{shared: true, running: make(map[string]int)} }

// Watch yields the events of the agents, as [Agent.Watch] does. The store must be the one
// that the agents use. Watch ends when ctx is done.
//
// With WatchOptions.After, Watch also yields the stored events of turns that other processes
// run, if the store is a [TurnStore]. Deltas and other events that are not stored come only
// from turns of this process, and from processes that [Events.Share] connects. Watch yields an error if the session is deleted, or if the
// store is closed or unreachable for 30 seconds.
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

// followKey identifies a session that is followed.
type followKey struct {
	store   TurnStore
	session string
}

// follower follows the changes of a session in the store, for all its watchers. Events.mu
// guards its fields.
type follower struct {
	watchers []*storedWatch
	cancel   context.CancelFunc
	done     chan struct{} // closed when its goroutine has ended
}

// follow wakes the watcher when any process changes the session in the store. The watchers of
// a session share one goroutine. The returned function ends it.
func (s *storedWatch) follow(store TurnStore, w *watcher) (stop func()) {
	es := s.source
	s.failed = make(chan error, 1)
	stopFollowing := es.addFollower(w)
	key := followKey{store, s.session}
	shared := reflect.TypeOf(store).Comparable()
	es.mu.Lock()
	f := (*follower)(nil)
	if shared {
		f = es.follows[key]
	}
	if f == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
		f = &follower{cancel: cancel, done: make(chan struct{})}
		if shared {
			if es.follows == nil {
				es.follows = make(map[followKey]*follower)
			}
			es.follows[key] = f
		}
		go es.followChanges(ctx, key, f) // ends when its last watcher leaves, or with an error
	}
	f.watchers = append(f.watchers, s)
	es.mu.Unlock()
	return func() {
		stopFollowing()
		es.mu.Lock()
		f.watchers = slices.DeleteFunc(f.watchers, func(o *storedWatch) bool { return o == s })
		last := len(f.watchers) == 0
		if last {
			es.forgetFollower(key, f)
		}
		es.mu.Unlock()
		if last {
			f.cancel()
			<-f.done
		}
	}
}

// forgetFollower makes the next watcher start another follower. The caller holds es.mu.
func (es *Events) forgetFollower(key followKey, f *follower) {
	if es.follows != nil && reflect.TypeOf(key.store).Comparable() && es.follows[key] == f {
		delete(es.follows, key)
	}
}

// followChanges wakes the watchers of a follower after each change. If the session is deleted,
// or the store is unreachable for followPatience, it gives them the error and ends.
func (es *Events) followChanges(ctx context.Context, key followKey, f *follower) {
	defer close(f.done)
	var since time.Time // when the store became unreachable; zero: it is reachable
	for {
		var failure error
		for _, err := range key.store.Changes(ctx, key.session) {
			if failure = err; err != nil {
				break
			}
			since = time.Time{}
			es.mu.Lock()
			for _, s := range f.watchers {
				s.watcher.changed.Store(true)
				s.watcher.rouse()
			}
			es.mu.Unlock()
		}
		if ctx.Err() != nil {
			return
		}
		if since.IsZero() {
			since = time.Now()
		}
		if errors.Is(failure, ErrNotFound) || errors.Is(failure, ErrClosed) || time.Since(since) > followPatience {
			es.mu.Lock()
			for _, s := range f.watchers {
				s.failed <- failure // it has room: each watcher gets one error
			}
			es.forgetFollower(key, f) // a new watcher tries again
			es.mu.Unlock()
			return
		}
		select {
		case <-time.After(followPause):
		case <-ctx.Done():
			return
		}
	}
}
