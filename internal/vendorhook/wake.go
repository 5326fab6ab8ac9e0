package vendorhook

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/declare/worker"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/childturn"
)

// Wakes keeps what hooks with asyncRewake want to tell the model, until a turn takes it. Such
// a hook runs in the background, and ends with exit code 2 to wake the model. The zero value
// is empty. It is safe for concurrent use.
type Wakes struct {
	used atomic.Bool

	mu      sync.Mutex
	waiting map[string][]string // by session
}

// mostWakes limits how many messages wait for a session, and mostSleeping for how many
// sessions they wait. Older messages are dropped.
const (
	mostWakes    = 8
	mostSleeping = 1000
)

// Use gives a hook of [Read] or [Speak] the place for its messages.
func (w *Wakes) Use(d *declare.Declaration) {
	if p, ok := d.Protocol.(*proto); ok && p.rewake {
		p.wakes = w
		w.used.Store(true)
	}
}

// Used reports whether a hook may wake the model.
func (w *Wakes) Used() bool { return w.used.Load() }

func (w *Wakes) add(session, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil || len(w.waiting) >= mostSleeping && w.waiting[session] == nil {
		w.waiting = make(map[string][]string)
	}
	w.waiting[session] = append(w.waiting[session], text)
	if texts := w.waiting[session]; len(texts) > mostWakes {
		w.waiting[session] = texts[1:]
	}
}

// take returns the messages for a session, and forgets them.
func (w *Wakes) take(session string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.waiting[session]
	delete(w.waiting, session)
	return texts
}

// mostWoken limits how often a message makes a turn continue. Later messages wait for the next
// turn. So a hook at Stop that always fails does not keep a turn alive.
const mostWoken = 2

// Hooks returns the hooks that give the messages to the model: after the next tool call, when
// the turn is about to end, or at the start of the next turn.
func (w *Wakes) Hooks() []hook.Subscription {
	opts := func() *hook.Options {
		return &hook.Options{
			Description: "tells the model what a hook with asyncRewake found", Version: "1", NoInherit: true, Visibility: hook.VisibleInternally,
		}
	}
	return []hook.Subscription{
		belay.TurnPrePolicy.On("belay.wake", func(_ context.Context, in belay.TurnBegun) (belay.TurnPolicy, error) {
			return belay.TurnPolicy{Aside: belay.Aside{Context: belay.Tell(w.take(in.Session())...)}}, nil
		}, opts()),
		belay.ToolPost.On("belay.wake", func(_ context.Context, in belay.ToolResult) (belay.ToolReaction, error) {
			return belay.ToolReaction{Aside: belay.Aside{Context: belay.Tell(w.take(in.Session())...)}}, nil
		}, opts()),
		belay.TurnStop.On("belay.wake", func(_ context.Context, in belay.StopAttempt) (belay.StopVerdict, error) {
			if in.Continuations() >= mostWoken {
				return belay.StopVerdict{}, nil
			}
			if texts := w.take(in.Session()); len(texts) > 0 {
				return belay.Continue(strings.Join(texts, "\n\n")), nil
			}
			return belay.StopVerdict{}, nil
		}, opts()),
	}
}

// wake keeps what a hook in the background says to the model. It reports whether the hook
// wakes the model.
func (p *proto) wake(ctx context.Context, e *worker.Envelope, r *declare.Reply) bool {
	if !p.rewake || p.wakes == nil || r.Code != exitBlock || r.Err != nil {
		return false
	}
	text := cmp.Or(strings.TrimSpace(r.Stderr), strings.TrimSpace(r.Stdout), "It printed nothing.")
	if p.rewakeMessage != "" {
		text = p.rewakeMessage + "\n\n" + text
	}
	p.wakes.add(cmp.Or(childturn.Of(ctx).Session, e.Session), fmt.Sprintf("A hook of %s at %s (%s), which ran in the background, wants you to read this:\n%s", p.Vendor.Title(), p.event.Name, p.decl.ID, text))
	return true
}
