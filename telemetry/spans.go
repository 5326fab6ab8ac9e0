package telemetry

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/tracecontext"
)

// begin begins the span of a turn or of a job.
func (t *Telemetry) begin(ctx context.Context, s *belay.Span) *place {
	p := &place{Context: ctx, wants: true, session: s.Scope.Session, turn: s.Scope.Turn}
	p.id = tracecontext.IDOf(p.session, p.turn)
	if s.Kind == belay.SpanJob {
		t.beginJob(p, s)
		return p
	}
	name, opts := t.names.of("invoke_agent ", s.Name), since(s)
	if above := placeOf(ctx); above != nil && s.Run != "" { // a subagent
		t.start(p, name, opts...)
		return p
	}
	caller := trace.SpanContextFromContext(ctx)
	if caller.HasTraceID() {
		opts = append(slices.Clip(opts), trace.WithLinks(trace.Link{SpanContext: caller, Attributes: linkedTo("caller")}))
		t.start(p, name, append(slices.Clip(opts), trace.WithNewRoot())...)
	} else {
		t.start(p, name, opts...)
	}
	if p.wants { // another id generator: the spans have the trace in common, but the id of this one is random
		t.startUnder(p, name, opts...)
	}
	if caller.IsValid() && p.recording() {
		trace.SpanFromContext(ctx).AddLink(trace.Link{SpanContext: p.span.SpanContext(), Attributes: linkedTo("turn")})
	}
	return p
}

func linkedTo(what string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("belay.link", what)}
}

// start makes the span of a place.
func (t *Telemetry) start(p *place, name string, opts ...trace.SpanStartOption) {
	p.ctx, p.span = t.tracer.Start(p, name, opts...)
}

// startUnder makes the span again, below the span of the turn, which need not exist in this
// process. It keeps the decision of the sampler about the first span, which is dropped.
func (t *Telemetry) startUnder(p *place, name string, opts ...trace.SpanStartOption) {
	p.wants = false
	if !p.recording() {
		return
	}
	turn := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(p.id[:16]), SpanID: trace.SpanID(p.id[16:24]), TraceFlags: p.span.SpanContext().TraceFlags(), Remote: true,
	})
	p.ctx, p.span = t.tracer.Start(trace.ContextWithRemoteSpanContext(p, turn), name, opts...)
}

// beginJob begins the span of an attempt of a job, below the span of its turn. The turn may
// have ended long ago.
func (t *Telemetry) beginJob(p *place, s *belay.Span) {
	name := "job " + s.Job.Subscription
	if s.Job.Handler != "" {
		name = "job " + s.Job.Handler
	}
	t.start(p, name, trace.WithNewRoot())
	t.startUnder(p, name, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(s.Began))
	if p.recording() {
		a := attributesOf(p)
		a.add(jobID.String(s.Job.ID), jobKey.String(s.Job.Key), attemptNumber.Int(s.Job.Attempt), phaseName.String(s.Job.Phase))
		a.giveTo(p.span)
	}
}

// inside begins a span inside a turn.
func (t *Telemetry) inside(ctx context.Context, above *place, s *belay.Span) context.Context {
	switch s.Kind {
	case belay.SpanStep:
		step := strconv.Itoa(s.Scope.Step)
		p := &place{Context: ctx, wants: true, session: above.session, turn: above.turn, step: s.Scope.Step}
		p.id = tracecontext.IDOf(s.Scope.Session, s.Scope.Turn, "step", step)
		t.start(p, t.names.of("step ", step), since(s)...)
		p.wants = false
		return p.ctx
	case belay.SpanTool:
		p := &place{Context: ctx, wants: true, session: above.session, turn: above.turn, step: above.step}
		p.id = tracecontext.IDOf(s.Scope.Session, s.Scope.Turn, "call", s.Call.ID)
		name := "execute_tool"
		if tool := t.toolName(s); tool != "" {
			name = t.names.of("execute_tool ", tool)
		}
		t.start(p, name, since(s)...)
		p.wants = false
		return p.ctx
	case belay.SpanModel:
		ctx, _ = t.tracer.Start(ctx, t.names.of("chat ", s.Name), toModel...)
		return ctx
	default:
		return ctx
	}
}

// toolName returns the name of a tool. A name that the model made up is content.
func (t *Telemetry) toolName(s *belay.Span) string {
	if t.opts.Content {
		return s.Call.Tool
	}
	return s.Name
}

// toModel are the options of all requests to models.
var toModel = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}

// since returns the time at which a span began, if it began earlier. The SDK takes the time of
// all others by itself, which needs no allocation.
func since(s *belay.Span) []trace.SpanStartOption {
	if s.Resumed {
		return []trace.SpanStartOption{trace.WithTimestamp(s.Began)}
	}
	return nil
}

// end ends a span. If another process will end it, the span is dropped here. What was inside
// is exported, and the process that ends the span gives it the same id.
func (t *Telemetry) end(ctx context.Context, p *place, s *belay.Span) {
	switch s.Kind {
	case belay.SpanTurn:
		if s.Suspended || s.Resumed {
			t.partOfTurn(p, s)
		}
		if s.Suspended {
			return
		}
		t.turnAttributes(p, s).giveTo(p.span)
		finish(p.span, turnFault(s))
	case belay.SpanStep:
		if !s.Suspended {
			attributesOf(p).giveTo(p.span)
			finish(p.span, faultOf(s.Err))
		}
	case belay.SpanTool:
		if !s.Suspended {
			t.toolAttributes(p, s).giveTo(p.span)
			finish(p.span, resultFault(s.Result))
		}
	case belay.SpanModel:
		span := trace.SpanFromContext(ctx)
		t.modelAttributes(p, s).giveTo(span)
		finish(span, faultOf(s.Err))
	case belay.SpanCommit:
		if !t.leavesOut(s) {
			t.over(p, "commit", s, attributesOf(p), faultOf(s.Err))
		}
	case belay.SpanHook:
		if !t.leavesOut(s) {
			t.over(p, "hook "+s.HookRun.Subscription, s, runAttributes(p, s.HookRun), string(s.HookRun.Class))
		}
	case belay.SpanApproval:
		t.over(p, "approval "+s.Name, s, approvalAttributes(p, s), "")
	case belay.SpanJob:
		p.span.SetAttributes(runID.String(s.HookRun.ID), hookState.String(s.HookRun.State.String()))
		finish(p.span, string(s.HookRun.Class))
	}
}

// quick is how long a hook run or a commit may take that has no span.
const quick = time.Millisecond

// leavesOut reports whether a hook run or a commit gets no span: see Options.Quick. In a turn
// whose tools and models are fast, these spans would cost more than everything else.
func (t *Telemetry) leavesOut(s *belay.Span) bool {
	if t.opts.Quick || s.Err != nil || s.Ended.Sub(s.Began) >= quick {
		return false
	}
	r := s.HookRun
	return r == nil || r.State == hook.Completed && r.Severity == hook.SeverityPass && r.Attempt == 0 && r.Job == "" && len(r.Contributed) == 0
}

// over makes a span of something that is over and had nothing inside.
func (t *Telemetry) over(p *place, name string, s *belay.Span, a *attributes, fault string) {
	_, span := t.tracer.Start(p.ctx, name, trace.WithTimestamp(s.Began))
	a.giveTo(span)
	finish(span, fault, trace.WithTimestamp(s.Ended))
}

// partOfTurn makes a span for the part of a turn that ran in this process.
func (t *Telemetry) partOfTurn(p *place, s *belay.Span) {
	_, span := t.tracer.Start(p.ctx, "run", trace.WithTimestamp(p.here))
	a := attributesOf(p)
	a.add(resumed.Bool(s.Resumed), endReason.String(string(s.Turn.Reason)))
	a.giveTo(span)
	finish(span, "")
}

// finish ends a span, now if opts has no time. fault is the type of the error, or "".
func finish(span trace.Span, fault string, opts ...trace.SpanEndOption) {
	if fault != "" {
		span.SetStatus(codes.Error, fault)
		span.SetAttributes(errorType.String(fault))
	}
	span.End(opts...)
}

// faultOf returns the type of an error. It never has the error's message, which may have
// content.
func faultOf(err error) string {
	if err == nil {
		return ""
	}
	switch failure := (*belay.ModelError)(nil); {
	case errors.As(err, &failure):
		return "model." + string(failure.Kind)
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, belay.ErrFenced), errors.Is(err, belay.ErrHeld), errors.Is(err, belay.ErrConflict):
		return "store.lost"
	default:
		return "_OTHER"
	}
}

func turnFault(s *belay.Span) string {
	if s.Turn.Reason != belay.EndError {
		return ""
	}
	if fault := faultOf(s.Err); fault != "" {
		return fault
	}
	return "_OTHER"
}

func resultFault(r *belay.Result) string {
	if r == nil || !r.IsError {
		return ""
	}
	if r.Class == "" {
		return "_OTHER"
	}
	return string(r.Class)
}

// pageOf returns the address of the page of a turn in the console, or "".
func (t *Telemetry) pageOf(scope hook.Scope) string {
	if t.opts.URL == "" {
		return ""
	}
	return t.opts.URL + "/sessions/" + url.PathEscape(scope.Session) + "?turn=" + url.QueryEscape(scope.Turn)
}
