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
)

// Child is the run of a subagent below a tool call.
type Child struct {
	// Name is the subagent's name, and Prompt what it is asked.
	Name, Prompt string
	// Run is the run's id. Defaults to one of its own.
	Run string
	// Isolated leaves the child's questions to its own agent. Defaults to asking
	// whoever the parent asks.
	Isolated bool
	// Ends says that an earlier run, which was parked or interrupted, is ended and not
	// gone on with: subagent.start is not asked. Defaults to a run that begins.
	Ends bool
}

// ChildError is why a child run gave no answer.
type ChildError struct {
	Name string
	// Status is error, aborted or denied.
	Status string
	// Message says why.
	Message string
	// Text is what the child said last.
	Text string

	err error
}

func (e *ChildError) Error() string { return fmt.Sprintf("subagent %q: %s", e.Name, e.Message) }
func (e *ChildError) Unwrap() error { return e.err }

// The ways in which a child run ends.
const (
	ChildSuccess = "success"
	ChildFailed  = "error"
	ChildAborted = "aborted"
	ChildDenied  = "denied"
	ChildParked  = "parked"
)

// lineage is what a turn has from the one that it is a child of.
type lineage struct {
	parent   *turn
	run      string
	name     string
	depth    int // 1 below the main agent
	isolated bool
	// grace is how long a child that was cancelled is waited for: less than its parent
	// is, so that each level tells of the one below it before it is given up itself.
	grace time.Duration
	// turn and session are what the parent had taken when the child began.
	turn, session Usage
	// counted says that the child's turns add up what they take by themselves.
	counted atomic.Bool
	// over says that its end was told: what it tells now comes too late.
	over atomic.Bool
}

type lineageKey struct{}

func lineageOf(ctx context.Context) *lineage {
	l, _ := ctx.Value(lineageKey{}).(*lineage)
	return l
}

// Child takes a turn of a subagent, between subagent.start and subagent.stop. What
// take yields is told to those who watch the parent, as the child's. A session whose
// turn is taken with the context that take gets is a child of this turn: the parent's
// hooks, its floor, its scope and its budget hold there too, whatever the child's
// agent has, and what needs a person is asked where the parent asks.
//
// It returns the child's turn if that ended well, or parked; then the tool should
// park too, and call Child again when it is resumed. It returns a [*ChildError] for
// everything else, and when the context ends soon after, whatever the child does.
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
		c.wish(func(w *wishes) { w.waits = append(w.waits, turn.Waits...) })
	}
	if turn != nil && !l.counted.Load() {
		l.charge(turn.Usage)
	}
	c.emitChild(l, EventSubagentCompleted, SubagentEvent{Name: child.Name, Status: status, Message: message})
	c.stopped(l, status, message)
	if failure != nil {
		return nil, failure
	}
	return turn, nil
}

// descend makes the lineage of a child, unless that would go too deep or in circles.
func (c *Controls) descend(child *Child) (*lineage, error) {
	if err := c.enter("subagent"); err != nil {
		return nil, err
	}
	defer c.leave()
	t := c.turn
	l := &lineage{
		parent: t, run: cmp.Or(child.Run, "run-"+strings.ToLower(rand.Text()[:12])), name: child.Name, depth: 1, isolated: child.Isolated,
		turn: t.state.Usage, session: t.session.state.Usage,
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
		return nil, &ChildError{Name: child.Name, Status: ChildFailed, Message: fmt.Sprintf("it is at work already, and would wait for itself (%s): do it yourself, or answer with what you have", way)}
	case l.depth > most:
		return nil, &ChildError{Name: child.Name, Status: ChildFailed, Message: fmt.Sprintf("subagents may be %d deep, and this one would be %d (%s): do it yourself", most, l.depth, way)}
	}
	return l, nil
}

// attend asks subagent.start and takes the child's turn.
func (c *Controls) attend(ctx context.Context, l *lineage, child *Child, take func(ctx context.Context) iter.Seq2[Event, error]) (*Turn, *ChildError) {
	if by, why := c.admit(ctx, l, child); by != "" {
		return nil, &ChildError{Name: child.Name, Status: ChildDenied, Message: fmt.Sprintf("denied by %q: %s", by, cmp.Or(why, "no reason was given"))}
	}
	run := &childRun{controls: c, lineage: l, ends: child.Ends, err: errors.New("its run came to a sudden end"), done: make(chan struct{})}
	go run.main(context.WithValue(ctx, lineageKey{}, l), take) // left behind if it heeds no abort
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
		return nil, &ChildError{Name: child.Name, Status: ChildAborted, Message: "it was cancelled and did not stop", err: context.Cause(ctx)}
	}
}

// admit asks subagent.start. It returns who denies and why.
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
		Name: child.Name, Prompt: child.Prompt, Run: l.run, Parent: t.runID(), Depth: l.depth, soFar: t.so(),
	})})
	c.heard(outcome.Output.Aside, outcome.Diagnostics)
	switch {
	case outcome.Output.decision() == SubagentDeny:
		return cmp.Or(outcome.By, "subagent.start"), outcome.Output.Reason
	case err != nil:
		return "subagent.start", err.Error()
	default:
		return "", ""
	}
}

// stopped tells subagent.stop.
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
		Name: l.name, Run: l.run, Parent: t.runID(), Depth: l.depth, Status: status, Message: message, soFar: t.so(),
	})})
	c.heard(Aside{Note: outcome.Output}, outcome.Diagnostics)
	if err != nil {
		t.agent.opts.Logger.WarnContext(t.base, "an observe phase failed", "session", t.scope.Session, "turn", t.scope.Turn, "error", err)
	}
}

// heard keeps what hooks said, until the turn takes it over.
func (c *Controls) heard(aside Aside, diagnostics []hook.Diagnostic) {
	c.wish(func(w *wishes) {
		for _, p := range c.turn.aside(nil, aside) {
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

// emitChild tells about a child as a whole.
func (c *Controls) emitChild(l *lineage, kind EventKind, about SubagentEvent) {
	if c.enter("subagent") != nil {
		return
	}
	defer c.leave()
	c.turn.emit(Event{Kind: kind, Text: about.Name, Subagent: &about, Run: l.run, Parent: c.turn.runID(), Depth: l.depth})
}

// childRun is a child's turn on a goroutine of its own.
type childRun struct {
	controls *Controls
	lineage  *lineage
	ends     bool // and does not begin
	end      *Turn
	below    map[string]bool // the runs of its children
	text     strings.Builder // of a runner that reports no turn
	err      error
	done     chan struct{}
}

func (r *childRun) main(ctx context.Context, take func(ctx context.Context) iter.Seq2[Event, error]) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("its run panicked: %v", p)
		}
	}()
	var failure error
	for event, err := range take(ctx) {
		if err != nil {
			failure = err
			continue
		}
		r.hear(&event)
	}
	r.err = failure
}

// place says where an event belongs: that of a runner elsewhere, which counts from
// itself, is put below the child's run. What the child's own children tell has its place
// already.
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

// hear hands on what the child tells.
func (r *childRun) hear(e *Event) {
	l := r.lineage
	r.place(e)
	if e.Run == l.run && e.End != nil {
		r.end = e.End
	}
	if e.Run == l.run && e.Kind == EventTextDelta {
		r.text.WriteString(e.Text)
	}
	if r.controls.enter("subagent") != nil {
		return
	}
	defer r.controls.leave()
	if !l.over.Load() {
		l.parent.pass(e)
	}
}

// outcome says what came of a run that is over.
func (r *childRun) outcome(ctx context.Context) (*Turn, *ChildError) {
	failed := &ChildError{Name: r.lineage.name, Status: ChildFailed, Text: r.text.String(), err: r.err}
	if r.end != nil {
		failed.Text = r.end.Text
	}
	switch {
	case r.ends && r.err == nil:
		failed.Status, failed.Message = ChildAborted, "it was given up"
	case ctx.Err() != nil && (r.end == nil || r.end.Reason == EndAborted):
		failed.Status, failed.Message, failed.err = ChildAborted, "it was aborted", cmp.Or(r.err, context.Cause(ctx))
	case r.stays():
		return &Turn{Reason: EndParked}, nil
	case r.err != nil:
		failed.Message = r.err.Error()
	case r.end == nil:
		return &Turn{Reason: EndTurn, Text: r.text.String()}, nil
	case r.end.Reason == EndTurn || r.end.Reason == EndParked:
		return r.end, nil
	default:
		failed.Message = fmt.Sprintf("its turn ended with %s", r.end.Reason)
		if why := cmp.Or(r.end.Why, r.end.By); why != "" {
			failed.Message += ": " + why
		}
	}
	if r.end != nil && !r.lineage.counted.Load() {
		r.lineage.charge(r.end.Usage)
	}
	return nil, failed
}

// stays reports whether the child's turn could not be gone on with for want of a tool. It
// is parked as it was, and its parent tells why.
func (r *childRun) stays() bool {
	_, stays := errors.AsType[*MissingToolError](r.err)
	if stays {
		r.controls.wish(func(w *wishes) { w.missing = r.err })
	}
	return stays
}

// childMissing is why a child could not be gone on with, if that is what the turn parks for.
func (t *turn) childMissing() error {
	t.wishes.mu.Lock()
	defer t.wishes.mu.Unlock()
	err := t.wishes.missing
	t.wishes.missing = nil
	return err
}

// runID is the id of the child run that the turn belongs to; the main agent has
// none.
func (t *turn) runID() string {
	if t.lineage == nil {
		return ""
	}
	return t.lineage.run
}

// inherit makes the turn a child's, if it is taken for a parent.
func (t *turn) inherit() error {
	l := t.lineage
	if l == nil {
		return nil
	}
	l.counted.Store(true)
	if err := t.snap.Inherit(l.parent.snap); err != nil {
		return fmt.Errorf("the parent's turn is over: %w", err)
	}
	return nil
}

// findModel finds a model by its name. What a parent's policy names, an agent that
// finds none by name has its parents find.
func (t *turn) findModel(name string) (Model, error) { //nolint:ireturn // which model it is, the name says
	at := t
	for name != "" && name != at.agent.model.info.Name && at.agent.opts.Models == nil && at.lineage != nil {
		at = at.lineage.parent
	}
	return at.agent.findModel(t.ctx, name)
}

// asking is the turn whose agent asks people: the topmost one that the child's
// questions get to.
func (t *turn) asking() *turn {
	for t.lineage != nil && !t.lineage.isolated {
		t = t.lineage.parent
	}
	return t
}

// floors are what every call must pass: the agent's own, and those of its parents.
func (t *turn) floors() []Authorizer {
	var all []Authorizer
	for at := t; at != nil; at = at.lineage.above() {
		if f := at.agent.opts.Authorizer; f != nil && (at == t || at.agent != t.agent) {
			all = append(all, f)
		}
	}
	return all
}

func (l *lineage) above() *turn {
	if l == nil {
		return nil
	}
	return l.parent
}

// spend counts what was taken, here and for all parents.
func (t *turn) spend(u Usage) {
	t.state.Usage = t.state.Usage.add(u)
	if t.lineage != nil {
		t.lineage.charge(u)
	}
}

// charge counts what a child took for all its parents.
func (l *lineage) charge(u Usage) {
	for ; l != nil; l = l.parent.lineage {
		w := &l.parent.wishes
		w.mu.Lock()
		w.spent = w.spent.add(u)
		w.mu.Unlock()
	}
}

// overspent says which budget is used up: the agent's own, or a parent's.
func (t *turn) overspent() string {
	if why := t.agent.opts.Budget.spent(t.state.Usage, t.session.state.Usage.add(t.state.Usage)); why != "" {
		return why
	}
	for l := t.lineage; l != nil; l = l.parent.lineage {
		w := &l.parent.wishes
		w.mu.Lock()
		turn := l.turn.add(w.spent)
		w.mu.Unlock()
		if why := l.parent.agent.opts.Budget.spent(turn, l.session.add(turn)); why != "" {
			return fmt.Sprintf("agent %s, with its subagents: %s", l.parent.agent.opts.Name, why)
		}
	}
	return ""
}

// limiter is a parent that may not use everything, with the tools that it has.
type limiter struct {
	agent *Agent
	tools *toolset
}

// permits reports whether a child of the parent's may use a tool: the parent may, by the
// tool's name and by its owner, and does not have it itself as one that it may not use.
func (l limiter) permits(b *boundTool) bool {
	if !l.agent.inScope(b.name) || !l.agent.narrowed.allows(b.owner, b.name) {
		return false
	}
	own := l.tools.byName[b.name]
	return own == nil || own.inScope
}

// limiters adds the parents that may not use everything, however far above.
func (t *turn) limiters(all []limiter) []limiter {
	for at := t.lineage.above(); at != nil; at = at.lineage.above() {
		if a := at.agent; a.opts.Scope != nil || len(a.narrowed) > 0 {
			all = append(all, limiter{a, a.allTools()})
		}
	}
	return all
}

// limitedTools is a toolset without what parents may not use. As long as neither it nor
// they change it serves every step of every child.
type limitedTools struct {
	of  *toolset
	by  []limiter
	set *toolset
}

// mostLimited is how many of them an agent keeps: its tools by themselves and with those
// of a step, for two parents.
const mostLimited = 4

// limited takes away the tools that a parent may not use.
func (t *turn) limited(tools *toolset) *toolset {
	if t.lineage == nil {
		return tools
	}
	var room [4]limiter
	by := t.limiters(room[:0])
	if len(by) == 0 {
		return tools
	}
	var kept []*limitedTools
	if known := t.agent.limited.Load(); known != nil {
		kept = *known
	}
	for _, k := range kept {
		if k.of == tools && slices.Equal(k.by, by) {
			return k.set
		}
	}
	now := &limitedTools{tools, slices.Clone(by), newToolset(cut(tools.tools, by))}
	next := append([]*limitedTools{now}, kept[:min(len(kept), mostLimited-1)]...)
	t.agent.limited.Store(&next)
	return now.set
}

// cut returns tools of which those are out of scope that a parent may not use.
func cut(tools []*boundTool, by []limiter) []*boundTool {
	tools = slices.Clone(tools)
	for i, b := range tools {
		if b.inScope && slices.ContainsFunc(by, func(l limiter) bool { return !l.permits(b) }) {
			out := *b
			out.inScope = false
			tools[i] = &out
		}
	}
	return tools
}
