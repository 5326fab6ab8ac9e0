package belay

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/belay-run/belay/hook"
)

// showing holds the events about hooks that were not emitted yet. A hook answers before the
// event it refers to, such as a response or a result, has been emitted: its own comes behind that.
type showing struct {
	mu     sync.Mutex // not that of events: their reader sets the pace
	events []Event
}

func (s *showing) add(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *showing) take() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	s.events = nil
	return events
}

// aside adds what hooks said besides to what the model is to be told, and has people told
// what they showed. It may be called by the turn's calls too.
func (t *turn) aside(pending []PendingReminder, a Aside) []PendingReminder {
	if len(a.shown) > 0 && t.heeded() {
		for _, s := range a.shown {
			t.showing.add(Event{Kind: EventHookOutput, Step: t.scope.Step, Text: s.Text, By: s.From})
		}
	}
	return appendAside(pending, a)
}

// showFailures shows people which hooks failed, and why. It returns the diagnostics. The turn's
// calls may call it too.
func (t *turn) showFailures(diagnostics []hook.Diagnostic) []hook.Diagnostic {
	if len(diagnostics) == 0 || !t.heeded() {
		return diagnostics
	}
	for _, d := range diagnostics {
		if !hookFailure(&d) {
			continue
		}
		said := d.Err.Error()
		if safe, ok := errors.AsType[*hook.SafeError](d.Err); ok {
			said = strings.TrimPrefix(said, safe.Message) // which the diagnostic has
		}
		if said = strings.TrimPrefix(said, ": "); said == d.Message {
			said = ""
		}
		t.showing.add(Event{
			Kind: EventHookFailed, Step: t.scope.Step, By: d.Subscription, Diagnostic: &d, Text: ending(validText(said), mostShown),
		})
	}
	return diagnostics
}

// hookFailure reports whether a diagnostic says that a hook failed. A hook whose turn was aborted
// did not.
func hookFailure(d *hook.Diagnostic) bool {
	return d.Subscription != "" && d.Err != nil && d.Code != hook.CodeCanceled
}

// tellFailures tells the host which hooks failed outside a turn, where no event can.
func (a *Agent) tellFailures(scope *hook.Scope, diagnostics []hook.Diagnostic) {
	if a.opts.Runtime == nil || a.opts.Runtime.Failed == nil {
		return
	}
	for _, d := range diagnostics {
		if hookFailure(&d) {
			a.opts.Runtime.Failed(*scope, hook.Problem{Phase: d.Phase, Subscription: d.Subscription, Code: d.Code, Err: d.Err})
		}
	}
}

// mostShown is how much is shown of what a failed hook said, in bytes.
const mostShown = 2 << 10

// ending returns the end of a text, at most n bytes.
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

// tellShown emits what showing holds.
func (t *turn) tellShown() {
	for _, e := range t.showing.take() {
		t.emit(e)
	}
}

// goesOn has the turn take another step because turn.stop says so: the model is told, and
// so are people.
func (t *turn) goesOn(by, why string) {
	t.state.Continuations++
	t.tell(ReminderBlocked, by, "the turn does not end yet: "+why)
	t.showing.add(Event{Kind: EventTurnContinued, Step: t.scope.Step, Text: why, By: by})
}

// goneOn tells that turn.stop is not asked: hooks had the turn go on often enough.
func (t *turn) goneOn() {
	t.diagnostics = append(t.diagnostics, hook.Diagnostic{
		Code: hook.CodeStopLimit, Level: hook.CodeStopLimit.Level(), Phase: TurnStop.Name(),
		Message: fmt.Sprintf("hooks had the turn go on %d times, which is the limit, and were not asked again", t.state.Continuations),
	})
}
