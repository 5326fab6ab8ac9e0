package belay

import (
	"maps"
	"sync"

	"github.com/belay-run/belay/hook"
)

// wishes are changes that tools asked for through their Controls. The turn applies them
// between steps, because tools run on other goroutines.
type wishes struct {
	mu       sync.Mutex
	injected []wishedInjection
	model    *namedModel // the model for this turn
	kept     *namedModel // the model for this and later turns
	compact  bool

	// Data from child turns.
	spent       Usage
	children    map[string]Usage // for each turn of a child, the usage that this step has counted
	ahead       map[string]Usage // the part of this usage that the child itself has not counted yet
	waits       []Question
	askedBelow  []string // the ids of calls whose subagents wait for something
	missing     error    // why a child could not be resumed
	pending     []wishedReminder
	diagnostics []hook.Diagnostic
}

// wishedInjection is a message that a tool has added during a call.
type wishedInjection struct {
	call string
	Injection
}

// wishedReminder is a reminder from the subagent of a call.
type wishedReminder struct {
	call string
	PendingReminder
}

// applyWishes switches to the model that a tool asked for.
func (t *turn) applyWishes() {
	w := &t.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.model == nil {
		return
	}
	t.model, t.state.Model = w.model, w.model.info.Name
	if w.kept != nil {
		t.session.keepModel(w.kept)
	}
	t.write.clean = false
	w.model, w.kept = nil, nil
}

// withAppended appends the messages that tools have added. The caller passes the results
// of the step, and the added messages come after them. Until then, the added messages are
// in TurnState.Appended, so that a parked turn keeps them.
func (t *turn) withAppended(messages []*Message) []*Message {
	for _, in := range t.state.Appended {
		messages = append(messages, in.message())
	}
	t.state.Appended = nil
	t.wishes.recallChildren(nil)
	t.state.Children = nil
	return messages
}

// recallChildren sets the usage that the step has already counted for each turn of a
// child.
func (w *wishes) recallChildren(counted map[string]Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.children, w.ahead = maps.Clone(counted), nil
}

// gatherWishes collects the messages that tools have added, and the data from child turns.
func (t *turn) gatherWishes() {
	w := &t.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.injected {
		t.state.Appended = append(t.state.Appended, in.Injection)
	}
	t.state.Usage, t.state.Children = t.state.Usage.add(w.spent), maps.Clone(w.children)
	t.waits = append(t.waits, w.waits...)
	t.askedBelow = append(t.askedBelow, w.askedBelow...)
	for _, p := range w.pending {
		t.session.state.Pending = append(t.session.state.Pending, p.PendingReminder)
	}
	t.diagnostics = append(t.diagnostics, w.diagnostics...)
	w.injected, w.spent, w.waits, w.askedBelow, w.pending, w.diagnostics = nil, Usage{}, nil, nil, nil, nil
}

// compactIfAsked compacts the context if a tool asked for it or if the context is full.
func (t *turn) compactIfAsked() error {
	w := &t.wishes
	w.mu.Lock()
	asked := w.compact
	w.compact = false
	w.mu.Unlock()
	if asked {
		return t.ignoreFailedCompaction(t.compactNow())
	}
	return t.compactIfFull()
}
