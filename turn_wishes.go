package belay

import (
	"maps"
	"sync"

	"github.com/belay-run/belay/hook"
)

// wishes are what tools asked for through their Controls. The turn applies them between
// steps, because tools run in parallel with it.
type wishes struct {
	mu       sync.Mutex
	injected []wishedInjection
	model    *namedModel // for this turn
	kept     *namedModel // from now on
	compact  bool

	// What children leave for the turn.
	spent       Usage
	children    map[string]Usage // what is counted of each child's turn, in this step
	ahead       map[string]Usage // the part of children that the child itself has not counted yet
	waits       []Question
	askedBelow  []string // the calls whose children wait for something
	missing     error    // of a child that could not be resumed
	pending     []wishedReminder
	diagnostics []hook.Diagnostic
}

// wishedInjection is a message that the tool of a call added.
type wishedInjection struct {
	call string
	Injection
}

// wishedReminder is a reminder that comes from the subagent of a call.
type wishedReminder struct {
	call string
	PendingReminder
}

// applyWishes does what tools asked for through Controls, except what has to wait for a
// commit.
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

// withAppended adds the messages that tools have added behind the results of their
// step. Until then they are part of the turn's state, which a parked turn keeps.
func (t *turn) withAppended(messages []*Message) []*Message {
	for _, in := range t.state.Appended {
		messages = append(messages, in.message())
	}
	t.state.Appended = nil
	t.wishes.recallChildren(nil)
	t.state.Children = nil
	return messages
}

// recallChildren sets what is counted of each child's turn.
func (w *wishes) recallChildren(counted map[string]Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.children, w.ahead = maps.Clone(counted), nil
}

// gatherWishes takes over what tools have added, and what children left behind.
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
