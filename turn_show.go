package belay

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// heldEvents are events about hooks that are not emitted yet. A hook for a response or a
// result runs before Belay emits the event of that response or result. The hook's own event
// must come later.
type heldEvents struct {
	any    atomic.Bool // whether there are events: most turns have none
	mu     sync.Mutex  // not turnOutbox.mu, which a slow reader of events can block
	events []Event
}

func (s *heldEvents) add(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	s.any.Store(true)
}

func (s *heldEvents) take() []Event {
	if !s.any.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	s.any.Store(false)
	return events
}

// addAside adds the context of hooks to the pending reminders, and keeps events about
// their output until emitHeld. The goroutines of the turn's calls may also call addAside.
func (t *turn) addAside(pending []PendingReminder, a Aside) []PendingReminder {
	if len(a.shown) > 0 && t.hasAudience() {
		for _, s := range a.shown {
			t.outbox.held.add(Event{Kind: EventHookOutput, Step: t.scope.Step, Text: s.Text, By: s.From})
		}
	}
	return appendAside(pending, a)
}

// showFailures keeps events about failed hooks until emitHeld, and returns the
// diagnostics. The goroutines of the turn's calls may also call showFailures.
func (t *turn) showFailures(diagnostics []hook.Diagnostic) []hook.Diagnostic {
	if len(diagnostics) == 0 || !t.hasAudience() {
		return diagnostics
	}
	for _, d := range diagnostics {
		if !hookFailure(&d) {
			continue
		}
		said := d.Err.Error()
		if safe, ok := errors.AsType[*hook.SafeError](d.Err); ok {
			said = strings.TrimPrefix(said, safe.Message) // the diagnostic already has this message
		}
		if said = strings.TrimPrefix(said, ": "); said == d.Message {
			said = ""
		}
		t.outbox.held.add(Event{
			Kind: EventHookFailed, Step: t.scope.Step, By: d.Subscription, Diagnostic: &d, Text: ending(validText(said), mostShown),
		})
	}
	return diagnostics
}

// hookFailure reports whether a diagnostic is about a failed hook. A hook that was
// cancelled with its turn did not fail.
func hookFailure(d *hook.Diagnostic) bool {
	return d.Subscription != "" && d.Err != nil && d.Code != codes.Canceled
}

// reportFailures calls RuntimeOptions.Failed for hooks that failed outside a turn, where no
// stream can get an event.
func (a *Agent) reportFailures(scope *hook.Scope, diagnostics []hook.Diagnostic) {
	if a.opts.Runtime == nil || a.opts.Runtime.Failed == nil {
		return
	}
	for _, d := range diagnostics {
		if hookFailure(&d) {
			a.opts.Runtime.Failed(*scope, hook.Problem{Phase: d.Phase, Subscription: d.Subscription, Code: d.Code, Err: d.Err})
		}
	}
}

// mostShown is how many bytes of a failed hook's error output an event has.
const mostShown = 2 << 10

// ending returns the last part of a text, at most n bytes.
func ending(text string, n int) string {
	text = strings.TrimSpace(text)
	if len(text) <= n {
		return text
	}
	from := len(text) - n
	for !utf8.RuneStart(text[from]) {
		from++
	}
	return text[from:]
}

// emitHeld emits the held events.
func (t *turn) emitHeld() {
	for _, e := range t.outbox.held.take() {
		t.emit(e)
	}
}

// continueTurn makes the turn take another step because a hook of turn.stop asked for it.
// The model gets a reminder, and an event is emitted.
func (t *turn) continueTurn(by, why string) {
	t.state.Continuations++
	t.addReminder(reminderBlocked, by, "the turn does not end yet: "+why)
	t.outbox.held.add(Event{Kind: EventTurnContinued, Step: t.scope.Step, Text: why, By: by})
}

// noteStopLimit adds a diagnostic: turn.stop does not fire again, because hooks have made
// the turn continue too often.
func (t *turn) noteStopLimit() {
	t.diagnostics = append(t.diagnostics, hook.Diagnostic{
		Code: codes.StopLimit, Level: codes.StopLimit.Level(), Phase: TurnStop.Name(),
		Message: fmt.Sprintf("hooks have made the turn continue %d times, which is the limit: turn.stop does not fire again", t.state.Continuations),
	})
}
