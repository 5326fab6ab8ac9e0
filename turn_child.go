package belay

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/childturn"
)

// lineage connects a child turn with its parent.
type lineage struct {
	parent   *turn
	run      string
	name     string
	depth    int // 1 for a child of the main agent
	isolated bool
	// grace is how long a cancelled child may take to return. It is shorter than the
	// parent's grace. So the parent can still report that the child did not return, before
	// the parent's own caller stops waiting.
	grace time.Duration
	// turn and session are the parent's usage when the child began.
	turn, session Usage
	// counted says that the child is a Belay agent in this process. Its turns then add
	// their usage to the parent.
	counted atomic.Bool
	// over says that the child's end was reported. Later events are dropped.
	over atomic.Bool
	// controls are those of the parent's call.
	controls *Controls
	// direct says that the child's turn sends its events to the parent itself: see package
	// childturn.
	direct atomic.Bool
}

type lineageKey struct{}

func lineageOf(ctx context.Context) *lineage {
	l, _ := ctx.Value(lineageKey{}).(*lineage)
	return l
}

// Child runs a turn of a subagent, between subagent.start and subagent.stop. The function
// take runs the turn. It must use the context that it gets, so that the parent's hooks,
// floor, scope and budget apply to the child too, and the parent's Approver and Asker get
// its questions. Child also sends the events that take yields to the parent's stream.
//
// Child returns the child's turn if the turn ended normally or parked. If the turn parked,
// your tool should park too, and call Child again when it is resumed. In all other cases
// Child returns a [*ChildError]. It also returns a ChildError soon after ctx ends.
func (c *Controls) Child(ctx context.Context, child Child, take func(ctx context.Context) iter.Seq2[Event, error]) (*Turn, error) {
	l, err := c.descend(&child)
	if err != nil {
		return nil, err
	}
	c.emitChild(l, EventSubagentInvoked, SubagentEvent{Name: child.Name, Prompt: child.Prompt})
	turn, failure := c.attend(ctx, l, &child, take)
	l.over.Store(true)
	status, message := ChildSuccess, ""
	switch {
	case failure != nil:
		status, message = failure.Status, failure.Message
	case turn.Reason == EndParked:
		status = ChildParked
		if len(turn.Waits) > 0 {
			c.wish(func(w *wishes) { w.waits, w.askedBelow = append(w.waits, turn.Waits...), append(w.askedBelow, c.call) })
		}
	}
	if turn != nil && !l.counted.Load() {
		l.charge("", turn.Usage)
	}
	c.emitChild(l, EventSubagentCompleted, SubagentEvent{Name: child.Name, Status: status, Message: message})
	c.stopped(l, status, message)
	if failure != nil {
		return nil, failure
	}
	return turn, nil
}

// descend makes the lineage of a child. It returns an error if the child is nested too
// deep, or if the same subagent is already one of its parents. With Child.Ends it allows
// both.
func (c *Controls) descend(child *Child) (*lineage, error) {
	if err := c.enter("subagent"); err != nil {
		return nil, err
	}
	defer c.leave()
	t := c.turn
	l := &lineage{
		parent: t, run: cmp.Or(child.Run, "run-"+strings.ToLower(rand.Text()[:12])), name: child.Name, depth: 1, isolated: child.Isolated,
		turn: t.state.Usage, session: t.session.state.Usage, controls: c,
	}
	if l.grace = t.agent.opts.Limits.Grace; t.lineage != nil {
		l.grace = min(l.grace, t.lineage.grace)
	}
	l.grace = l.grace * 3 / 4
	path := []string{child.Name}
	most := t.agent.opts.Limits.Depth
	circle := false
	for up := t.lineage; up != nil; up = up.parent.lineage {
		l.depth++
		circle = circle || up.name == child.Name
		path = append(path, up.name)
		most = min(most, up.parent.agent.opts.Limits.Depth)
	}
	slices.Reverse(path)
	way := strings.Join(path, " → ")
	switch {
	case child.Ends:
		return l, nil
	case circle:
		return nil, &ChildError{Name: child.Name, Status: ChildFailed, Message: fmt.Sprintf("this subagent is already running and would wait for itself (%s): do the task yourself, or answer with what you know", way)}
	case l.depth > most:
		return nil, &ChildError{Name: child.Name, Status: ChildFailed, Message: fmt.Sprintf("the maximum depth of subagents is %d, and this one would be at depth %d (%s): do the task yourself", most, l.depth, way)}
	}
	return l, nil
}

// attend fires subagent.start and runs the child's turn.
func (c *Controls) attend(ctx context.Context, l *lineage, child *Child, take func(ctx context.Context) iter.Seq2[Event, error]) (*Turn, *ChildError) {
	if by, why := c.admit(ctx, l, child); by != "" {
		return nil, &ChildError{Name: child.Name, Status: ChildDenied, Message: fmt.Sprintf("denied by %q: %s", by, cmp.Or(why, "no reason was given"))}
	}
	run := &childRun{controls: c, lineage: l, ends: child.Ends, err: errors.New("the subagent's run called runtime.Goexit"), done: make(chan struct{})}
	within := childturn.In(childturn.Streamed(ctx), childturn.Run{Name: child.Name, ID: l.run, Session: l.main().scope.Session})
	go run.main(context.WithValue(context.WithValue(within, lineageKey{}, l), callKey{}, (*Invocation)(nil)), take) // if the child ignores an abort, attend stops waiting for this goroutine
	select {
	case <-run.done:
		return run.outcome(ctx)
	case <-ctx.Done():
	}
	grace := time.NewTimer(l.grace)
	defer grace.Stop()
	select {
	case <-run.done:
		return run.outcome(ctx)
	case <-grace.C:
		return nil, &ChildError{Name: child.Name, Status: ChildAborted, Message: "the subagent was cancelled, but it has not stopped", err: context.Cause(ctx)}
	}
}

// admit fires subagent.start. It returns who denies the run, and why.
func (c *Controls) admit(ctx context.Context, l *lineage, child *Child) (by, why string) {
	if err := c.enter("subagent"); err != nil {
		return "belay", err.Error()
	}
	defer c.leave()
	t := c.turn
	if child.Ends || !SubagentStart.Active(t.snap) {
		return "", ""
	}
	outcome, err := SubagentStart.Dispatch(ctx, t.snap, SubagentCall{newInput(t.scope, subagentCall{
		Name: child.Name, Prompt: child.Prompt, Run: l.run, Parent: t.runID(), Depth: l.depth, soFar: t.soFar(),
	})})
	c.keepAside(outcome.Output.Aside, outcome.Diagnostics)
	switch {
	case outcome.Output.decision() == subagentDeny:
		return cmp.Or(outcome.By, "subagent.start"), outcome.Output.Reason
	case err != nil:
		return "subagent.start", err.Error()
	default:
		return "", ""
	}
}

// stopped fires subagent.stop.
func (c *Controls) stopped(l *lineage, status, message string) {
	if c.enter("subagent") != nil {
		return
	}
	defer c.leave()
	t := c.turn
	if !SubagentStop.Active(t.snap) {
		return
	}
	ctx, cancel := t.afterAbort()
	defer cancel()
	outcome, err := SubagentStop.Dispatch(ctx, t.snap, SubagentReturn{newInput(t.scope, subagentReturn{
		Name: l.name, Run: l.run, Parent: t.runID(), Depth: l.depth, Status: status, Message: message, soFar: t.soFar(),
	})})
	c.keepAside(Aside{Note: outcome.Output}, outcome.Diagnostics)
	if err != nil {
		t.agent.opts.Logger.WarnContext(t.base, "an observe phase failed", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	}
}

// keepAside keeps the reminders and the output of hooks until the turn collects them.
func (c *Controls) keepAside(aside Aside, diagnostics []hook.Diagnostic) {
	c.wish(func(w *wishes) {
		for _, p := range c.turn.addAside(nil, aside) {
			w.pending = append(w.pending, wishedReminder{c.call, p})
		}
		w.diagnostics = append(w.diagnostics, c.turn.showFailures(diagnostics)...)
	})
}

func (c *Controls) wish(change func(w *wishes)) {
	w := &c.turn.wishes
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// emitChild emits an event about the child run itself.
func (c *Controls) emitChild(l *lineage, kind EventKind, about SubagentEvent) {
	if c.enter("subagent") != nil {
		return
	}
	defer c.leave()
	c.turn.emit(Event{Kind: kind, Text: about.Name, Subagent: &about, Run: l.run, Parent: c.turn.runID(), Depth: l.depth})
}

// childRun is the turn of a child on its own goroutine.
type childRun struct {
	controls *Controls
	lineage  *lineage
	ends     bool // only end an earlier run; do not begin one
	end      *Turn
	below    map[string]bool // the run ids of the child's own children
	text     strings.Builder // the text, for a take function that yields no turn_end event
	err      error
	done     chan struct{}
}

func (r *childRun) main(ctx context.Context, take func(ctx context.Context) iter.Seq2[Event, error]) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("the subagent's run panicked: %v", p)
		}
	}()
	var failure error
	for event, err := range take(ctx) {
		if err != nil {
			failure = err
			continue
		}
		r.observe(&event)
	}
	r.err = failure
}

// place sets the run, the parent and the depth of an event. A remote runner knows neither
// its parent nor its depth, so place moves its events below the child's run. Events of
// local children are already correct.
func (r *childRun) place(e *Event) {
	l := r.lineage
	switch {
	case e.Run == "" || e.Run == l.run || e.Depth <= 0:
		e.Run, e.Parent, e.Depth = l.run, l.parent.runID(), l.depth
	case e.Parent == l.run || r.below[e.Parent]:
		if r.below == nil {
			r.below = make(map[string]bool)
		}
		r.below[e.Run] = true
	default:
		e.Run, e.Depth = l.run+"/"+e.Run, e.Depth+l.depth
		if e.Parent = l.run + "/" + e.Parent; e.Parent == l.run+"/" {
			e.Parent = l.run
		}
	}
}

// observe keeps the child's text and result, and sends its event to the parent's stream.
func (r *childRun) observe(e *Event) {
	l := r.lineage
	r.place(e)
	if e.Run == l.run && e.End != nil {
		r.end = e.End
	}
	if e.Run == l.run && e.Kind == EventTextDelta {
		r.text.WriteString(e.Text)
	}
	if e.Kind != EventTurnEnd || !l.direct.Load() {
		l.forward(e)
	}
}

// forward sends an event of the child to the parent's stream, unless the parent's call is
// over.
func (l *lineage) forward(e *Event) {
	if l.controls.enter("subagent") != nil {
		return
	}
	defer l.controls.leave()
	if !l.over.Load() {
		l.parent.forward(e)
	}
}

// outcome returns the result of a run that has ended.
func (r *childRun) outcome(ctx context.Context) (*Turn, *ChildError) {
	failed := &ChildError{Name: r.lineage.name, Status: ChildFailed, Text: r.text.String(), err: r.err}
	if r.end != nil {
		failed.Text = r.end.Text
	}
	switch {
	case r.ends && r.err == nil:
		failed.Status, failed.Message = ChildAborted, "the parked or interrupted run was ended"
	case ctx.Err() != nil && (r.end == nil || r.end.Reason == EndAborted):
		failed.Status, failed.Message, failed.err = ChildAborted, "the subagent was aborted", cmp.Or(r.err, context.Cause(ctx))
	case r.stays():
		return &Turn{Reason: EndParked}, nil
	case r.err != nil:
		failed.Message = r.err.Error()
	case r.end == nil:
		return &Turn{Reason: EndTurn, Text: r.text.String()}, nil
	case r.end.Reason == EndTurn || r.end.Reason == EndParked:
		return r.end, nil
	default:
		failed.Message = fmt.Sprintf("the subagent's turn ended with %s", r.end.Reason)
		if why := cmp.Or(r.end.Why, r.end.By); why != "" {
			failed.Message += ": " + why
		}
	}
	if r.end != nil && !r.lineage.counted.Load() {
		r.lineage.charge("", r.end.Usage)
	}
	return nil, failed
}

// stays reports whether the child's turn could not be resumed because a tool is missing.
// The turn then stays parked, and its parent reports why.
func (r *childRun) stays() bool {
	_, stays := errors.AsType[*MissingToolError](r.err)
	if stays {
		r.controls.wish(func(w *wishes) { w.missing = r.err })
	}
	return stays
}

// childMissing returns why a child could not be resumed. It returns nil if all children
// could be resumed.
func (t *turn) childMissing() error {
	t.wishes.mu.Lock()
	defer t.wishes.mu.Unlock()
	err := t.wishes.missing
	t.wishes.missing = nil
	return err
}

// runID returns the id of the child run that the turn belongs to. It is empty for the main
// agent.
func (t *turn) runID() string {
	if t.lineage == nil {
		return ""
	}
	return t.lineage.run
}

// inherit gives a child turn the hooks of its parent. It does nothing for a turn of the main
// agent.
func (t *turn) inherit() error {
	l := t.lineage
	if l == nil {
		return nil
	}
	l.counted.Store(true)
	if err := t.snap.Inherit(l.parent.snap); err != nil {
		return fmt.Errorf("the turn of the parent agent has ended: %w", err)
	}
	return nil
}

// findModel finds a model by its name. If the agent has no Options.Models, it asks the
// parents, because a parent's policy may name the model.
func (t *turn) findModel(name string) (Model, error) { //nolint:ireturn // which model it is, the name says
	at := t
	for name != "" && name != at.agent.model.info.Name && at.agent.opts.Models == nil && at.lineage != nil {
		at = at.lineage.parent
	}
	return at.agent.findModel(t.ctx, name)
}

// asking returns the turn whose agent asks people: the highest parent that gets the
// child's questions, or the turn itself.
func (t *turn) asking() *turn {
	for t.lineage != nil && !t.lineage.isolated {
		t = t.lineage.parent
	}
	return t
}

// floors returns the floors that every call must pass: the floor of the agent and the
// floors of its parents.
func (t *turn) floors() []Authorizer {
	var all []Authorizer
	for at := t; at != nil; at = at.lineage.above() {
		if f := at.agent.opts.Authorizer; f != nil && (at == t || at.agent != t.agent) {
			all = append(all, f)
		}
	}
	return all
}

// main returns the turn of the main agent.
func (l *lineage) main() *turn {
	at := l.parent
	for at.lineage != nil {
		at = at.lineage.parent
	}
	return at
}

func (l *lineage) above() *turn {
	if l == nil {
		return nil
	}
	return l.parent
}
