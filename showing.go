package belay

import (
	"fmt"
	"sync"

	"github.com/belay-run/belay/hook"
)

// showing is what hooks showed to people and nobody was told of yet. Hooks answer before
// that is told which they answer about, a response or a result: they are heard behind it.
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

// tellShown tells people what hooks showed.
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
