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

// WatchOptions select the events that a watcher gets. A nil *WatchOptions is valid.
type WatchOptions struct {
	// Session selects the events of one session. Defaults to all sessions.
	Session string
	// Buffer is how many events may wait for the watcher. Defaults to 256.
	Buffer int
	// Lossless makes turns wait for the watcher when its buffer is full, so that no event
	// is dropped. Watch says when turns stop waiting. Defaults to false: Belay drops the
	// oldest waiting events.
	Lossless bool
	// After is the [Event.Position] of the last event that the watcher got, or the number
	// of the last message that it knows. "0" means that it knows no message. If After is
	// set, Session must be set too. The watcher first gets the events of all later stored
	// messages, and then new events: see [Agent.Watch]. Defaults to new events only.
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

// Watch yields the events of the agent's sessions until ctx is done or the agent is
// closed. Neither is an error. When ctx is done, Watch drops the events that still wait.
// When the agent is closed, Watch yields them first. A watcher does not slow down a turn:
// if it is too slow, Watch drops the oldest waiting events, yields a *MissedError, and
// continues. Watching begins when Watch returns.
//
// With WatchOptions.Lossless, Watch drops no events: a turn waits while the buffer of the
// watcher is full. The turn stops waiting when the loop over the events ends, or when ctx
// is done. It also stops waiting when the turn is cancelled or Close is called: then the
// buffer grows, and the watcher still gets every event. Run the loop in another goroutine
// than the turn, and do not let it wait for the turn: otherwise both wait until one of
// these contexts is done. If you do not start the loop, cancel ctx. The agent logs a
// warning when a turn has waited for 10 seconds.
//
// With WatchOptions.After, a watcher continues after a position, also in another process,
// and each event has a position. The events of messages then come from the store, in the
// order of the messages, without gaps and without repetition. They are turn_start with
// the user's message, model_response, tool_use, tool_use_result (when the results of the
// step are stored) and compaction_end. If the last turn has ended or is parked, its
// turn_end follows, without Text, Steps and Usage.
//
// Other events are not stored, so Watch cannot repeat them: deltas, progress, output of
// hooks, errors, and events of subagents and approvals. The watcher gets them as they
// happen, for turns that this agent runs. [Questions] lists pending approvals. Watch
// yields ErrCursor if the position is invalid.
func (a *Agent) Watch(ctx context.Context, opts *WatchOptions) iter.Seq2[Event, error] {
	return a.watch(ctx, a.done, opts)
}

// watch is like Watch, but it ends when the channel last is closed and no event is waiting.
func (a *Agent) watch(ctx context.Context, last <-chan struct{}, opts *WatchOptions) iter.Seq2[Event, error] {
	if opts != nil && opts.After != "" {
		return a.events.watchStored(ctx, a, a.store, last, opts)
	}
	return a.events.watch(ctx, a, last, opts)
}

// watch yields the events of an agent, or of all agents if a is nil.
func (es *Events) watch(ctx context.Context, a *Agent, last <-chan struct{}, opts *WatchOptions) iter.Seq2[Event, error] {
	w := newWatcher(a, opts)
	es.add(w)
	stop := context.AfterFunc(ctx, func() { es.remove(w) })
	return func(yield func(Event, error) bool) {
		defer stop()
		defer es.remove(w)
		for {
			events, missed := w.take()
			if missed > 0 && (ctx.Err() != nil || !yield(Event{}, &MissedError{missed})) {
				return
			}
			for _, e := range events {
				if ctx.Err() != nil || !yield(*e, nil) {
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

// newWatcher makes a watcher of an agent, or of all agents if a is nil.
func newWatcher(a *Agent, opts *WatchOptions) *watcher {
	w := &watcher{agent: a, wake: make(chan struct{}, 1), gone: make(chan struct{}), size: 256}
	if opts != nil {
		w.session = opts.Session
		if opts.Buffer != 0 {
			w.size = max(opts.Buffer, 1)
		}
		w.lossless = opts.Lossless
	}
	return w
}

func (es *Events) add(one *watcher) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.addLocked(one)
}

// addLocked is add for a caller that holds es.mu.
func (es *Events) addLocked(one *watcher) {
	es.all = append(slices.Clip(es.all), one)
	es.count.Store(int32(len(es.all)))
}

func (es *Events) remove(one *watcher) {
	es.mu.Lock()
	defer es.mu.Unlock()
	var kept []*watcher
	for _, o := range es.all {
		if o != one {
			kept = append(kept, o)
		}
	}
	if len(kept) < len(es.all) {
		close(one.gone)
	}
	es.all = kept
	es.count.Store(int32(len(es.all)))
}

// publish sends an event to everyone who watches its session, or the parent session of a
// child. It returns the lossless watchers that have no room for it: the caller waits for
// them with deliver.
func (es *Events) publish(a *Agent, session string, e *Event) (full []*watcher) {
	es.mu.Lock()
	all := es.all
	es.mu.Unlock()
	var shared *Event // the watchers share one copy of the event
	for _, o := range all {
		if (o.agent != nil && o.agent != a) || (o.session != "" && o.session != session && o.session != e.Session) {
			continue
		}
		if shared == nil {
			shared = copyEvent(e)
		}
		if o.put(shared, false) != nil {
			full = append(full, o)
		}
	}
	return full
}

// copyEvent returns a copy of an event for watchers. The event itself can then stay on the
// stack of the turn, which usually has no watchers.
func copyEvent(e *Event) *Event {
	c := *e
	return &c
}

// watcherPatience is how long a turn waits for a watcher until the agent logs a warning.
const watcherPatience = 10 * time.Second

// deliver waits until a lossless watcher has room for an event of the turn. If the turn
// is cancelled or the agent begins to close, the watcher gets the event although its
// buffer is full.
func (t *turn) deliver(w *watcher, e *Event) {
	warn := time.NewTimer(watcherPatience)
	defer warn.Stop()
	force, shared := false, copyEvent(e)
	for {
		room := w.put(shared, force)
		if room == nil {
			return
		}
		select {
		case <-room:
		case <-w.gone:
			return
		case <-t.ctx.Done():
			force = true
		case <-t.agent.ending:
			force = true
		case <-warn.C:
			t.agent.opts.Logger.WarnContext(t.base, "a turn is waiting for a lossless watcher that does not take its events: the watcher must run in another goroutine and must not wait for the turn",
				"session", e.Session, "turn", e.Turn, "event", e.Kind, "waited", watcherPatience)
		}
	}
}

// mostRecent is how many stored messages a watcher gets without reading the store.
const mostRecent = 8

// tellStored tells the watchers of a session which message was stored last. messages are the
// last messages of the session, and agent is the agent that stored them. So a watcher in this
// process need not read them from the store.
func (es *Events) tellStored(session, agent string, message int64, messages []*Message) {
	if es.count.Load() == 0 {
		return
	}
	es.mu.Lock()
	all := es.all
	es.mu.Unlock()
	var recent []*Message
	for _, o := range all {
		if o.session != session {
			continue
		}
		if recent == nil { // a copy, because a part of messages would keep all of them in memory
			recent = slices.Clone(messages[max(0, len(messages)-mostRecent):])
		}
		o.mu.Lock()
		o.recent, o.by = recent, agent
		o.mu.Unlock()
		o.stored.Store(message)
		o.rouse()
	}
}

// watcher holds the events that wait for one caller of Watch.
type watcher struct {
	agent    *Agent // nil: all agents
	session  string
	size     int
	lossless bool
	wake     chan struct{}
	gone     chan struct{} // closed when it no longer watches
	stored   atomic.Int64  // the last message that was stored while it watches
	changed  atomic.Bool   // the stored session may have changed: see storedWatch.follow
	follows  bool          // it wants the events of other processes; Events.mu guards it

	mu      sync.Mutex
	recent  []*Message // the last messages of the session, and the agent: see tellStored
	by      string
	waiting []*Event // other watchers have the same pointers
	missed  int
	room    chan struct{} // closed when take empties the buffer; nil if no turn waits for room
}

// put adds an event, which must not change any more. If the buffer is full and force is false, put drops the oldest
// event. A lossless watcher drops no event: then put does not add the event, and returns
// a channel that is closed when there may be room.
func (w *watcher) put(e *Event, force bool) (room <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) >= w.size && !force {
		if w.lossless {
			if w.room == nil {
				w.room = make(chan struct{})
			}
			return w.room
		}
		w.missed++
		w.waiting = w.waiting[1:]
	}
	w.waiting = append(w.waiting, e)
	w.rouse()
	return nil
}

// between returns the messages from the number first to the number last, and the agent that
// stored them, if tellStored has passed all of them.
func (w *watcher) between(first, last int64) (messages []*Message, agent string) {
	w.mu.Lock()
	recent, agent := w.recent, w.by
	w.mu.Unlock()
	for i, m := range recent {
		if m.Seq != first {
			continue
		}
		for j, m := range recent[i:] {
			if m.Seq != first+int64(j) { // after a compaction, the summary comes before older messages
				return nil, ""
			}
			if m.Seq == last {
				return recent[i : i+j+1], agent
			}
		}
	}
	return nil, ""
}

// miss adds to the number of events that were lost.
func (w *watcher) miss(events int) {
	if events <= 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.missed += events
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

func (w *watcher) take() ([]*Event, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	events, missed := w.waiting, w.missed
	w.waiting, w.missed = nil, 0
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
	return events, missed
}
