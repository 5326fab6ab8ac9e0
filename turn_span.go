package belay

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay/hook"
)

// turnSpans are the spans of a turn. Without a SpanExtension all fields are zero, and a turn
// only compares followers with nil.
type turnSpans struct {
	followers []SpanFollower
	ctx       context.Context //nolint:containedctx // the context of the turn's span
	outer     context.Context //nolint:containedctx // the context around the span
	root      *Span
	skips     time.Duration // no follower needs a hook run that took less and did nothing
}

// spans are Spans to use again: followers do not keep them, and a turn has one for each commit.
var spans = sync.Pool{New: func() any { return new(Span) }}

// newSpan returns a span with the fields of from. The caller frees it when it is over.
func newSpan(from Span) *Span {
	s := spans.Get().(*Span) //nolint:forcetypeassert // nothing else is in the pool
	*s = from
	return s
}

// free lets another turn use the span.
func (s *Span) free() {
	*s = Span{}
	spans.Put(s)
}

// followersOf lets the extensions follow a turn or a job.
func (c *composition) followersOf(ctx context.Context, root *Span) (context.Context, []SpanFollower) {
	var followers []SpanFollower
	for _, e := range c.spanners {
		var f SpanFollower
		if ctx, f = e.Follow(ctx, root); f != nil {
			followers = append(followers, f)
		}
	}
	return ctx, followers
}

// followTurn begins the span of a turn whose id is now known.
func (t *turn) followTurn(state *TurnState) {
	if t.spans.followers != nil { // an earlier turn of the session was ended first
		t.endTurnSpan(&Turn{ID: t.spans.root.Scope.Turn, Reason: EndAborted})
	} else if t.spans.outer != nil {
		t.setContext(t.spans.outer)
	}
	c := t.agent.composed.Load()
	for up := t.lineage.above(); len(c.spanners) == 0 && up != nil; up = up.lineage.above() {
		c = up.agent.composed.Load() // a subagent is followed by the extensions of its parent
	}
	if len(c.spanners) == 0 || t.quiet {
		return
	}
	root := newSpan(Span{Kind: SpanTurn, Scope: *t.scope, Began: time.Now(), Resumed: state != &t.own, Name: t.agent.opts.Name, Prompt: state.Text})
	root.Scope.Step = 0
	if t.lineage != nil {
		root.Run, root.Parent, root.Depth = t.lineage.run, t.lineage.parent.runID(), t.lineage.depth
	}
	if root.Resumed {
		if i := slices.IndexFunc(t.session.messages, func(m *Message) bool { return m.Turn == state.ID }); i >= 0 {
			root.Began = t.session.messages[i].Time
		}
	}
	ctx, followers := c.followersOf(t.ctx, root)
	t.spans = turnSpans{followers, ctx, t.ctx, root, skippedBy(followers)}
	t.setContext(ctx)
	if followers == nil {
		t.spans.root = nil
		root.free()
	}
}

// skippedBy returns how long a hook run may take that no follower needs.
func skippedBy(followers []SpanFollower) time.Duration {
	limit := time.Duration(math.MaxInt64)
	for _, f := range followers {
		skipper, ok := f.(RunSkipper)
		if !ok {
			return 0
		}
		limit = min(limit, skipper.SkipsRuns())
	}
	return limit
}

// setContext makes ctx the context of what the turn does now.
func (t *turn) setContext(ctx context.Context) {
	if t.ctx = ctx; ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	t.base = ctx
}

// endTurnSpan ends the span of the turn.
func (t *turn) endTurnSpan(result *Turn) {
	if t.spans.followers == nil {
		return
	}
	root := t.spans.root
	root.Turn, root.Err, root.Suspended = result, result.err, result.Reason == EndParked
	if root.Prompt == "" {
		root.Prompt = t.state.Text
	}
	t.endSpan(t.spans.ctx, root)
	root.free()
	t.setContext(t.spans.outer)
	t.spans = turnSpans{}
}

// beginSpan begins a span of the turn. The caller has checked that there are followers.
func (t *turn) beginSpan(ctx context.Context, s *Span) context.Context {
	s.Scope = *t.scope
	if s.Began.IsZero() {
		s.Began = time.Now()
	}
	for _, f := range t.spans.followers {
		ctx = f.BeginSpan(ctx, s) //nolint:fatcontext // each span is inside the one before
	}
	return ctx
}

func (t *turn) endSpan(ctx context.Context, s *Span) {
	if s.Ended.IsZero() {
		s.Ended = time.Now()
	}
	for _, f := range t.spans.followers {
		f.EndSpan(ctx, s)
	}
}

// reportSpan reports a span that is over, and frees it.
func (t *turn) reportSpan(s *Span) {
	t.endSpan(t.beginSpan(t.base, s), s)
	s.free()
}

// inStep runs a part of the turn inside the span of the current step, and frees the span.
func (t *turn) inStep(s *Span, run func(*turn) EndReason) (end EndReason) {
	if t.spans.followers == nil {
		return run(t)
	}
	outer := t.ctx
	ctx := t.beginSpan(outer, s)
	t.setContext(ctx)
	defer func() {
		s.Suspended = end == EndParked || t.end.lost || t.wasHandedOver()
		if end == EndError {
			s.Err = t.end.err
		}
		t.endSpan(ctx, s)
		s.free()
		t.setContext(outer)
	}()
	return run(t)
}

// openStep returns the span of the step that a resumed turn continues, or nil if the turn was
// between two steps. The step began when the message before its response was stored.
func (t *turn) openStep() *Span {
	if t.spans.followers == nil || !t.state.Unjudged && t.unanswered() == nil {
		return nil
	}
	s := newSpan(Span{Kind: SpanStep, Resumed: true, Began: t.spans.root.Began})
	if n := len(t.session.messages); n > 1 {
		s.Began = t.session.messages[n-2].Time
	}
	return s
}

// followCall begins the span of a call that will run. It returns parent and nil if nobody
// follows the turn.
func (t *turn) followCall(parent context.Context, c *call) (context.Context, *Span) {
	if t.spans.followers == nil {
		return parent, nil
	}
	c.followed = true
	s := newSpan(Span{Kind: SpanTool, Name: c.Tool, Call: &c.Invocation, Resumed: c.Resumes != ""})
	if s.Resumed {
		s.Began = c.batch.message.Time
	}
	return t.beginSpan(parent, s), s
}

// reportResult reports a call that got its result without running, such as a denied one.
func (t *turn) reportResult(c *call) {
	if t.spans.followers != nil && !c.followed {
		c.followed = true
		now, name := time.Now(), c.Tool
		if !t.knows(c) {
			name = ""
		}
		t.reportSpan(newSpan(Span{Kind: SpanTool, Name: name, Call: &c.Invocation, Result: c.result, Began: now, Ended: now}))
	}
}

// knows reports whether the agent has the tool of a call. A call that ended before it was checked,
// as after a refusal of the model, may have a name that the model made up.
func (t *turn) knows(c *call) bool {
	return c.tool != nil || t.request.tools.byName[c.Tool] != nil
}

// reportRuns reports the hook runs of a commit.
func (t *turn) reportRuns(runs []hook.Run) {
	for i := range runs {
		r := &runs[i]
		if !r.State.Final() || r.State == hook.Skipped {
			continue
		}
		t.reportSpan(newSpan(Span{Kind: SpanHook, HookRun: r, Began: r.Started, Ended: r.Ended}))
	}
}

// skipsRuns reports whether no follower needs the hook runs since the last commit.
func (t *turn) skipsRuns() bool {
	return t.spans.skips > 0 && !t.hasAudience() && !t.snap.Notable(t.spans.skips)
}

// reportLastRuns stores and reports the hook runs since the last commit.
func (t *turn) reportLastRuns() error {
	if t.spans.followers == nil || t.skipsRuns() { // Release stores them
		return nil
	}
	runs := t.snap.Take()
	t.reportRuns(runs)
	return t.snap.Record(t.base, runs)
}

// keepCommit stores a commit.
func (t *turn) keepCommit(c *Commit) error {
	if t.spans.followers == nil {
		return t.agent.store.Commit(t.base, c)
	}
	s := newSpan(Span{Kind: SpanCommit})
	ctx := t.beginSpan(t.base, s)
	err := t.agent.store.Commit(ctx, c)
	s.Err = err
	t.endSpan(ctx, s)
	s.free()
	return err
}

// jobWrapper is a function for hook.RuntimeOptions.WrapJob.
type jobWrapper = func(ctx context.Context, job hook.Job, next func(context.Context) hook.Run) hook.Run

// wrapJob returns a function that lets the extensions follow the attempts of a job. It calls
// inner, if it is not nil.
func (a *Agent) wrapJob(inner jobWrapper) jobWrapper {
	return func(ctx context.Context, job hook.Job, next func(context.Context) hook.Run) hook.Run {
		if inner != nil {
			run := next
			next = func(ctx context.Context) hook.Run { return inner(ctx, job, run) }
		}
		c := a.composed.Load()
		if len(c.spanners) == 0 {
			return next(ctx)
		}
		s := &Span{Kind: SpanJob, Scope: job.Scope, Job: &job, Attempt: job.Attempt, Began: time.Now()}
		ctx, followers := c.followersOf(ctx, s)
		run := next(ctx)
		s.Ended, s.HookRun = time.Now(), &run
		for _, f := range followers {
			f.EndSpan(ctx, s)
		}
		return run
	}
}
