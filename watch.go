package belay

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// WatchOptions select the events that a watcher gets. A nil *WatchOptions is valid.
type WatchOptions struct {
	// Session selects the events of one session. Defaults to all sessions.
	Session string
	// Buffer is how many events may wait for the watcher. Defaults to 256.
	Buffer int
	// After is the [Event.Position] of the last event that the watcher got, or the number
	// of the last message that it knows. "0" means that it knows none. After needs a
	// Session. The watcher first gets events of messages that were stored later, and then
	// new events: see [Agent.Watch]. Defaults to new events only.
	After string
}

// MissedError tells a watcher that it missed events.
type MissedError struct {
	// Missed is how many events were dropped since the last event that the watcher got.
	Missed int
}

func (e *MissedError) Error() string {
	return fmt.Sprintf("the watcher was too slow: %d events were dropped", e.Missed)
}

// Watch yields the events of the agent's sessions until ctx ends or the agent is closed.
// Neither is an error. When ctx ends, waiting events are dropped. When the agent is closed,
// they are yielded first. Watching begins when Watch returns.
//
// Watch never slows down a turn. If a watcher is too slow, Watch drops the oldest waiting
// events and yields a *MissedError. Then it continues.
//
// With WatchOptions.After, events have positions. So a watcher can continue at a position
// later, also in another process. The events of messages then come from the store, in the
// order of the messages, without gaps and repetitions:
//
//   - turn_start with the user's message
//   - model_response and its tool_use events
//   - tool_use_result, when the results of the step are stored
//   - compaction_end
//   - turn_end, without Text, Steps and Usage, if the last turn has ended or is parked
//
// Other events are not stored, so they are not repeated: deltas, progress, output of hooks,
// errors, and events of subagents and approvals. Watch yields them when they happen, for
// turns that this agent runs. For open approvals see [Questions]. The error is ErrCursor if
// the position is invalid.
func (a *Agent) Watch(ctx context.Context, opts *WatchOptions) iter.Seq2[Event, error] {
	return a.watch(ctx, a.done, opts)
}

// watch is like Watch, but it ends when the channel last is closed and no event is waiting.
func (a *Agent) watch(ctx context.Context, last <-chan struct{}, opts *WatchOptions) iter.Seq2[Event, error] {
	if opts != nil && opts.After != "" {
		return a.watchStored(ctx, last, opts)
	}
	w := newWatcher(opts)
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

// newWatcher makes a watcher from the options.
func newWatcher(opts *WatchOptions) *watcher {
	w := &watcher{wake: make(chan struct{}, 1), size: 256}
	if opts != nil {
		w.session = opts.Session
		if opts.Buffer != 0 {
			w.size = max(opts.Buffer, 1)
		}
	}
	return w
}

// watchers are the watchers of an agent.
type watchers struct {
	count atomic.Int32 // lets a turn check for watchers with one atomic load
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

// publish sends an event to the watchers of the given session and of the event's own
// session. These differ for an event of a child.
func (w *watchers) publish(session string, e *Event) {
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, o := range all {
		if o.session == "" || o.session == session || o.session == e.Session {
			o.put(e)
		}
	}
}

// tellStored tells the watchers of a session which message was stored last.
func (w *watchers) tellStored(session string, message int64) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	all := w.all
	w.mu.Unlock()
	for _, o := range all {
		if o.session == session {
			o.stored.Store(message)
			o.rouse()
		}
	}
}

// watcher holds the events that wait for one watcher.
type watcher struct {
	session string
	size    int
	wake    chan struct{}
	stored  atomic.Int64 // the number of the last stored message

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
	w.rouse()
}

// rouse wakes the watcher.
func (w *watcher) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// waits reports whether an event is waiting.
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
