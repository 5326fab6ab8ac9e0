package belay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// WatchOptions select what a watcher sees. A nil *WatchOptions is valid.
type WatchOptions struct {
	// Session limits it to one session. Defaults to all.
	Session string
	// Buffer is how many events may wait for the watcher. Defaults to 256.
	Buffer int
}

// MissedError tells a watcher that it fell behind.
type MissedError struct {
	// Missed is how many events were dropped since the last one it saw.
	Missed int
}

func (e *MissedError) Error() string {
	return fmt.Sprintf("the watcher fell behind: %d events were dropped", e.Missed)
}

// Watch yields the events of the agent's sessions until ctx is done or the agent is
// closed, neither of which is an error. When ctx is done the watcher ends with the event
// that it is handling: events that still wait for it are dropped. When the agent is closed
// they are yielded first. Watch never holds up a turn: a watcher that falls behind loses
// the oldest events that wait for it, gets a *MissedError, and continues.
// Watching begins when Watch returns.
func (a *Agent) Watch(ctx context.Context, opts *WatchOptions) iter.Seq2[Event, error] {
	return a.watch(ctx, a.done, opts)
}

// watch is Watch, with a channel that is closed when no further events come.
func (a *Agent) watch(ctx context.Context, last <-chan struct{}, opts *WatchOptions) iter.Seq2[Event, error] {
	w := &watcher{wake: make(chan struct{}, 1), size: 256}
	if opts != nil {
		w.session = opts.Session
		if opts.Buffer != 0 {
			w.size = max(opts.Buffer, 1)
		}
	}
	a.watchers.add(w)
	stop := context.AfterFunc(ctx, func() { a.watchers.remove(w) })
	return func(yield func(Event, error) bool) {
		defer stop()
		defer a.watchers.remove(w)
		for {
			events, missed := w.take()
			if missed > 0 && (ctx.Err() != nil || !yield(Event{}, &MissedError{missed})) {
				return
			}
			for _, e := range events {
				if ctx.Err() != nil || !yield(e, nil) {
					return
				}
			}
			if len(events) > 0 {
				continue
			}
			select {
			case <-w.wake:
			case <-ctx.Done():
				return
			case <-last:
				if !w.waits() {
					return
				}
			}
		}
	}
}

// watchers are those who watch an agent.
type watchers struct {
	count atomic.Int32 // so that a turn nobody watches pays for a load
	mu    sync.Mutex
	all   []*watcher
}

func (w *watchers) add(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(slices.Clip(w.all), one)
	w.count.Store(int32(len(w.all)))
}

func (w *watchers) remove(one *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var kept []*watcher
	for _, o := range w.all {
		if o != one {
			kept = append(kept, o)
		}
	}
	w.all = kept
	w.count.Store(int32(len(w.all)))
}

// tell hands an event to everyone who watches its session, or the one that a child's
// belongs to.
func (w *watchers) tell(session string, e *Event) {
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, o := range all {
		if o.session == "" || o.session == session || o.session == e.Session {
			o.put(e)
		}
	}
}

// watcher is a ring of the events that wait for one watcher.
type watcher struct {
	session string
	size    int
	wake    chan struct{}

	mu      sync.Mutex
	waiting []Event
	missed  int
}

func (w *watcher) put(e *Event) {
	w.mu.Lock()
	if len(w.waiting) >= w.size {
		w.missed++
		w.waiting = w.waiting[1:]
	}
	w.waiting = append(w.waiting, *e)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// waits reports whether there is something to take.
func (w *watcher) waits() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting) > 0
}

func (w *watcher) take() ([]Event, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed := w.waiting, w.missed
	w.waiting, w.missed = nil, 0
	return events, missed
}

// emit tells the outside what happens: the turn's stream, which sets the pace,
// and the watchers, which do not. It may be called by the turn's calls too.
func (t *turn) emit(e Event) {
	if !t.heeded() {
		return
	}
	e.Time = time.Now()
	e.Session, e.Turn, e.Agent = t.scope.Session, t.state.ID, t.scope.Agent
	orDefault(&e.Step, t.state.Step)
	if t.lineage != nil && e.Run == "" {
		e.Run, e.Parent, e.Depth = t.lineage.run, t.lineage.parent.runID(), t.lineage.depth
	}
	t.pass(&e)
}

// pass hands on an event, of this turn or of a child, under the next number.
func (t *turn) pass(e *Event) {
	if !t.heeded() {
		return
	}
	t.emitting.Lock() // so that events come in the order of their numbers
	defer t.emitting.Unlock()
	t.session.seq++
	e.Seq = t.session.seq
	if !t.told() {
		t.agent.watchers.tell(t.session.id, e)
	}
	if t.out != nil {
		select {
		case t.out <- *e:
		case <-t.left:
		}
	}
}

// told reports whether those who watch the agent hear of the turn through a parent
// of the same agent.
func (t *turn) told() bool {
	for at := t.lineage.above(); at != nil; at = at.lineage.above() {
		if at.agent == t.agent {
			return true
		}
	}
	return false
}

// heeded reports whether anybody is there to be told.
func (t *turn) heeded() bool {
	return !t.silent && (t.out != nil || t.agent.watchers.count.Load() > 0)
}
