package belay

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
)

// The messages that Share sends. Each is one of these words, a space and JSON.
const (
	// shareWanted announces the sessions that a process watches: a list of their ids.
	shareWanted = "watch"
	// shareEvents has events of a session: see sharedEvents.
	shareEvents = "events"
)

const (
	// shareEvery is how often a process announces the sessions that it watches. shareFor is
	// how long an announcement is valid.
	shareEvery = 10 * time.Second
	shareFor   = 3 * shareEvery
	// sharePause is how long events are collected before they are sent together.
	sharePause = 30 * time.Millisecond
	// shareBuffer is how many events of a session may wait until they are sent.
	shareBuffer = 1024
)

// Share exchanges events with the other processes that use the store, until ctx ends. While
// Share runs, a watcher with WatchOptions.After also gets events that are not stored, such
// as deltas, of turns that other processes run. The other processes must call Share too.
// These events can be lost, for example while the store is unreachable.
//
// A turn that no other process watches costs nothing more. A turn that is watched does not
// wait: another goroutine sends its events. Call Share only once at a time.
func (es *Events) Share(ctx context.Context, store BusStore) {
	ctx, cancel := context.WithCancel(ctx)
	sh := &sharing{events: es, store: store, ctx: ctx, news: make(chan struct{}, 1), wanted: make(map[string]time.Time), relays: make(map[string]*watcher), watchers: make(map[string][]*watcher)}
	received := store.Broadcasts(ctx)
	es.mu.Lock()
	es.share = sh
	for _, w := range es.all {
		if w.follows {
			sh.watchers[w.session] = append(sh.watchers[w.session], w)
		}
	}
	es.mu.Unlock()
	var working sync.WaitGroup
	working.Go(sh.announce) // ends when ctx ends
	for message := range received {
		sh.receive(message)
	}
	cancel()
	working.Wait() // announce also changes the relays
	es.mu.Lock()
	es.share = nil
	relays := sh.relays
	es.mu.Unlock()
	for _, w := range relays {
		es.remove(w)
	}
	sh.sending.Wait()
}

// sharing is one call of Share. Events.mu guards its maps.
type sharing struct {
	events  *Events
	store   BusStore
	ctx     context.Context //nolint:containedctx // it lives as long as the call
	news    chan struct{}   // has an element if a new session is watched here
	sending sync.WaitGroup

	wanted   map[string]time.Time  // the sessions that other processes watch, and until when
	relays   map[string]*watcher   // the watchers that collect events for other processes
	watchers map[string][]*watcher // the watchers that want the events of other processes
}

// sharedEvents is the content of a message with events.
type sharedEvents struct {
	Session string        `json:"session"`
	Missed  int           `json:"missed,omitempty"` // how many events before these were lost
	Events  []sharedEvent `json:"events"`
}

// sharedEvent is an event with the fields that only this package knows.
type sharedEvent struct {
	Event    Event `json:"event"`
	Stored   int64 `json:"stored"`
	Turns    int   `json:"turns,omitempty"`
	Unstored bool  `json:"unstored,omitempty"`
}

// announce tells other processes which sessions this process watches. It ends with ctx.
func (sh *sharing) announce() {
	every := time.NewTicker(shareEvery)
	defer every.Stop()
	for {
		select {
		case <-sh.news:
		case <-every.C:
			sh.expire()
		case <-sh.ctx.Done():
			return
		}
		sh.events.mu.Lock()
		var sessions []string
		for session := range sh.watchers {
			sessions = append(sessions, session)
		}
		sh.events.mu.Unlock()
		for chunk := range chunksOf(sessions, func(id string) int { return 2*len(id) + 3 }) {
			sh.send(shareWanted, chunk)
		}
	}
}

// chunksOf splits a list into parts that each fit into one message.
func chunksOf[T any](list []T, size func(T) int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		first, sum := 0, 0
		for i, one := range list {
			if sum += size(one); sum > MostBroadcast-256 && i > first {
				if !yield(list[first:i]) {
					return
				}
				first, sum = i, size(one)
			}
		}
		if first < len(list) {
			yield(list[first:])
		}
	}
}

// send sends a message. It drops a message that is too large or that the store does not
// accept.
func (sh *sharing) send(kind string, content any) {
	data, err := json.Marshal(content)
	if err != nil || len(kind)+1+len(data) > MostBroadcast {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(sh.ctx), time.Second)
	defer cancel()
	_ = sh.store.Broadcast(ctx, kind+" "+string(data)) // a lost message only loses events that are not stored
}

func (sh *sharing) receive(message string) {
	kind, content, _ := strings.Cut(message, " ")
	switch kind {
	case shareWanted:
		var sessions []string
		if json.Unmarshal([]byte(content), &sessions) == nil {
			sh.want(sessions)
		}
	case shareEvents:
		var shared sharedEvents
		if json.Unmarshal([]byte(content), &shared) == nil {
			sh.deliver(&shared)
		}
	}
}

// want notes that other processes watch these sessions.
func (sh *sharing) want(sessions []string) {
	es := sh.events
	es.mu.Lock()
	defer es.mu.Unlock()
	for _, session := range sessions {
		sh.wanted[session] = time.Now().Add(shareFor)
		if es.running[session] > 0 {
			sh.begin(session)
		}
	}
}

// expire removes the sessions that no other process watches any more.
func (sh *sharing) expire() {
	es := sh.events
	es.mu.Lock()
	var ended []*watcher
	for session, until := range sh.wanted {
		if time.Now().After(until) {
			delete(sh.wanted, session)
			if w := sh.relays[session]; w != nil {
				ended = append(ended, w)
				delete(sh.relays, session)
			}
		}
	}
	es.mu.Unlock()
	for _, w := range ended {
		es.remove(w)
	}
}

// begin starts to collect and send the events of a session, if another process watches it.
// The caller holds Events.mu.
func (sh *sharing) begin(session string) {
	if _, wanted := sh.wanted[session]; !wanted || sh.relays[session] != nil || sh.ctx.Err() != nil {
		return
	}
	w := newWatcher(nil, &WatchOptions{Session: session, Buffer: shareBuffer})
	sh.relays[session] = w
	sh.events.addLocked(w)
	sh.sending.Go(func() { sh.relay(session, w) }) // ends when w is removed
}

// relay sends the events of a session until its watcher is removed.
func (sh *sharing) relay(session string, w *watcher) {
	for last := false; !last; {
		select {
		case <-w.wake:
			pause := time.NewTimer(sharePause)
			select {
			case <-pause.C:
			case <-w.gone:
			}
			pause.Stop()
		case <-w.gone:
			last = true
		}
		sh.sendEvents(session, w)
	}
}

// sendEvents sends the events that wait for a relay.
func (sh *sharing) sendEvents(session string, w *watcher) {
	events, missed := w.take()
	var list []sharedEvent
	sizes := make(map[uint64]int)
	for _, e := range events {
		if !e.isShared() {
			continue
		}
		one := sharedEvent{*e, e.stored, e.turns, e.unstored}
		data, err := json.Marshal(&one)
		if err != nil || len(data)+len(session) > MostBroadcast-256 {
			missed++
			continue
		}
		sizes[e.Seq] = len(data) + 1
		list = append(list, one)
	}
	for chunk := range chunksOf(list, func(e sharedEvent) int { return sizes[e.Event.Seq] }) {
		sh.send(shareEvents, &sharedEvents{Session: session, Missed: missed, Events: chunk})
		missed = 0
	}
	if missed > 0 {
		sh.send(shareEvents, &sharedEvents{Session: session, Missed: missed})
	}
}

// isShared reports whether other processes need the event. They read the events of messages
// from the store.
func (e *Event) isShared() bool {
	switch e.Kind {
	case EventModelResponse, EventToolUse, EventToolUseResult, EventCompactionEnd, EventSteered:
		return e.unstored || e.Depth > 0
	default:
		return true
	}
}

// deliver passes events of another process to the watchers of the session.
func (sh *sharing) deliver(shared *sharedEvents) {
	sh.events.mu.Lock()
	watchers := slices.Clone(sh.watchers[shared.Session])
	sh.events.mu.Unlock()
	for i := range shared.Events {
		one := &shared.Events[i]
		one.Event.stored, one.Event.turns, one.Event.unstored = one.Stored, one.Turns, one.Unstored
	}
	for _, w := range watchers {
		w.miss(shared.Missed)
		for i := range shared.Events {
			w.put(&shared.Events[i].Event, w.lossless) // a watcher that is too slow misses events; a lossless one gets all
		}
	}
}

// addFollower makes a watcher one that also wants the events of other processes. The
// returned function ends this.
func (es *Events) addFollower(w *watcher) (stop func()) {
	es.mu.Lock()
	defer es.mu.Unlock()
	w.follows = true
	if sh := es.share; sh != nil {
		sh.watchers[w.session] = append(sh.watchers[w.session], w)
		select {
		case sh.news <- struct{}{}:
		default:
		}
	}
	return func() {
		es.mu.Lock()
		defer es.mu.Unlock()
		w.follows = false
		if sh := es.share; sh != nil {
			rest := slices.DeleteFunc(slices.Clone(sh.watchers[w.session]), func(o *watcher) bool { return o == w })
			if sh.watchers[w.session] = rest; len(rest) == 0 {
				delete(sh.watchers, w.session)
			}
		}
	}
}
