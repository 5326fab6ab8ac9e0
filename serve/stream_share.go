package serve

import (
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
)

// audiences are the sessions with open streams.
type audiences struct {
	mu       sync.Mutex
	sessions map[string]*audience
}

// audience is the set of open streams of a session. If there are several, they share the
// texts of events: an event is encoded once, however many clients follow the session.
type audience struct {
	streams atomic.Int32

	mu     sync.Mutex
	recent []sharedText // the last texts, in the order of a ring; nil if the streams share nothing
	next   int          // where the next text goes when the ring is full
}

// sharedText is an event with its text. Tenants get another text of the same event.
type sharedText struct {
	event  belay.Event
	tenant bool
	text   []byte
}

const (
	// recentTexts is how many texts the streams of a session share. A slow client that is
	// further behind encodes its events itself.
	recentTexts = 32
	// longestShared is the size of the longest text that is kept, in bytes.
	longestShared = 4 << 10
)

// join adds a stream of a session. Call leave when the stream ends.
func (as *audiences) join(session string) (a *audience, leave func()) {
	as.mu.Lock()
	defer as.mu.Unlock()
	if as.sessions == nil {
		as.sessions = make(map[string]*audience)
	}
	if a = as.sessions[session]; a == nil {
		a = new(audience)
		as.sessions[session] = a
	}
	a.streams.Add(1)
	return a, func() { as.leave(session, a) }
}

func (as *audiences) leave(session string, a *audience) {
	as.mu.Lock()
	defer as.mu.Unlock()
	switch a.streams.Add(-1) {
	case 0:
		delete(as.sessions, session)
	case 1:
		a.forget()
	}
}

// forget frees the shared texts.
func (a *audience) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent, a.next = nil, 0
}

// frame returns the frame of an event for a token. Events are equal if all their fields are
// equal, so two streams share a text only if both would encode the same event.
func (a *audience) frame(e *belay.Event, token *Token) frame {
	f := frame{id: e.Position, event: string(e.Kind)}
	if a.streams.Load() < 2 {
		f.data = token.event(*e)
		return f
	}
	a.mu.Lock() // another stream that wants the same text waits until it is encoded
	defer a.mu.Unlock()
	tenant := token.isTenant()
	for i := range a.recent {
		if r := &a.recent[i]; r.tenant == tenant && r.event == *e {
			f.encoded = r.text
			return f
		}
	}
	f.data = token.event(*e)
	text, ok := f.text()
	if !ok || len(text) > longestShared {
		return f
	}
	f.encoded = text
	one := sharedText{*e, tenant, text}
	if len(a.recent) < recentTexts {
		a.recent = append(a.recent, one)
	} else {
		a.recent[a.next] = one
		a.next = (a.next + 1) % recentTexts
	}
	return f
}
