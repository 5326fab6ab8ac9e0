package telemetry

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
)

// The attributes. The names of the GenAI conventions are used where there are any. The
// conversation is the session.
const (
	conversationID = semconv.GenAIConversationIDKey
	operation      = semconv.GenAIOperationNameKey
	agentName      = semconv.GenAIAgentNameKey
	errorType      = semconv.ErrorTypeKey

	turnID        = attribute.Key("belay.turn")
	stepNumber    = attribute.Key("belay.step")
	endReason     = attribute.Key("belay.end_reason")
	steps         = attribute.Key("belay.steps")
	resumed       = attribute.Key("belay.resumed")
	pageURL       = attribute.Key("belay.url")
	costUSD       = attribute.Key("belay.cost_usd")
	childRun      = attribute.Key("belay.subagent.run")
	parentRun     = attribute.Key("belay.subagent.parent")
	childDepth    = attribute.Key("belay.subagent.depth")
	attemptNumber = attribute.Key("belay.attempt")
	resultClass   = attribute.Key("belay.result.class")
	approvalID    = attribute.Key("belay.approval")
	askedBy       = attribute.Key("belay.asked_by")
	decidedBy     = attribute.Key("belay.decided_by")
	decision      = attribute.Key("belay.decision")
	runID         = attribute.Key("belay.run")
	subscription  = attribute.Key("belay.subscription")
	phaseName     = attribute.Key("belay.phase")
	originKind    = attribute.Key("belay.origin")
	hookState     = attribute.Key("belay.state")
	severity      = attribute.Key("belay.severity")
	jobID         = attribute.Key("belay.job")
	jobKey        = attribute.Key("belay.job.key")
)

// attributes are the attributes of a span while they are collected. The span copies them, so
// the same room serves the next span.
type attributes struct{ all []attribute.KeyValue }

var rooms = sync.Pool{New: func() any { return &attributes{make([]attribute.KeyValue, 0, 24)} }}

// attributesOf returns the attributes that all spans at a place have.
func attributesOf(p *place) *attributes {
	a := rooms.Get().(*attributes) //nolint:forcetypeassert // nothing else is in the pool
	a.add(conversationID.String(p.session), turnID.String(p.turn))
	if p.step > 0 {
		a.add(stepNumber.Int(p.step))
	}
	return a
}

func (a *attributes) add(more ...attribute.KeyValue) { a.all = append(a.all, more...) }

// cost adds a cost, if it is known.
func (a *attributes) cost(usd float64) {
	if usd > 0 {
		a.add(costUSD.Float64(usd))
	}
}

// giveTo adds the attributes to a span. They must not be used afterwards.
func (a *attributes) giveTo(span trace.Span) {
	span.SetAttributes(a.all...)
	clear(a.all)
	a.all = a.all[:0]
	rooms.Put(a)
}

func (t *Telemetry) turnAttributes(p *place, s *belay.Span) *attributes {
	end := s.Turn
	a := attributesOf(p)
	a.add(
		operation.String("invoke_agent"), agentName.String(s.Name), endReason.String(string(end.Reason)), steps.Int(end.Steps),
		semconv.GenAIUsageInputTokens(inputTokens(end.Usage)), semconv.GenAIUsageOutputTokens(end.Usage.Out),
	)
	a.cost(end.Usage.Cost)
	if s.Run != "" {
		a.add(childRun.String(s.Run), childDepth.Int(s.Depth))
		if s.Parent != "" {
			a.add(parentRun.String(s.Parent))
		}
	}
	if s.Resumed {
		a.add(resumed.Bool(true))
	}
	if page := t.pageOf(s.Scope); page != "" && s.Run == "" {
		a.add(pageURL.String(page))
	}
	if t.opts.Content {
		a.add(semconv.GenAIInputMessagesKey.String(t.content(s.Prompt)), semconv.GenAIOutputMessagesKey.String(t.content(end.Text)))
	}
	return a
}

func (t *Telemetry) modelAttributes(p *place, s *belay.Span) *attributes {
	a := attributesOf(p)
	a.add(operation.String("chat"))
	if provider, model := splitModel(s.Name); model != "" {
		a.add(semconv.GenAIRequestModel(model))
		if provider != "" {
			a.add(semconv.GenAIProviderNameKey.String(provider))
		}
	}
	if s.Attempt > 0 {
		a.add(attemptNumber.Int(s.Attempt))
	}
	if r := s.Request; r != nil && r.MaxTokens > 0 {
		a.add(semconv.GenAIRequestMaxTokens(r.MaxTokens))
	}
	if r := s.Response; r != nil {
		if _, model := splitModel(r.Model); model != "" {
			a.add(semconv.GenAIResponseModel(model))
		}
		a.add(
			finishReason(r.StopReason), semconv.GenAIUsageInputTokens(inputTokens(r.Usage)), semconv.GenAIUsageOutputTokens(r.Usage.Out),
		)
		a.cost(r.Usage.Cost)
		if r.Usage.CacheRead > 0 {
			a.add(semconv.GenAIUsageCacheReadInputTokens(r.Usage.CacheRead))
		}
		if r.Usage.CacheWrite > 0 {
			a.add(semconv.GenAIUsageCacheCreationInputTokens(r.Usage.CacheWrite))
		}
	}
	if t.opts.Content {
		a.add(t.modelContent(s)...)
	}
	return a
}

// finishReasons are the attributes for the usual reasons. The attribute is a list, which is
// made with reflection.
var finishReasons = map[belay.StopReason]attribute.KeyValue{
	belay.StopEnd:       semconv.GenAIResponseFinishReasons(string(belay.StopEnd)),
	belay.StopToolUse:   semconv.GenAIResponseFinishReasons(string(belay.StopToolUse)),
	belay.StopMaxTokens: semconv.GenAIResponseFinishReasons(string(belay.StopMaxTokens)),
	belay.StopRefusal:   semconv.GenAIResponseFinishReasons(string(belay.StopRefusal)),
}

func finishReason(r belay.StopReason) attribute.KeyValue {
	if known, ok := finishReasons[r]; ok {
		return known
	}
	return semconv.GenAIResponseFinishReasons(string(r))
}

// inputTokens returns all tokens that went in. The conventions count cached ones too.
func inputTokens(u belay.Usage) int { return u.In + u.CacheRead + u.CacheWrite }

// splitModel splits the name of a model, which has the form provider/name.
func splitModel(name string) (provider, model string) {
	if before, after, ok := strings.Cut(name, "/"); ok {
		return before, after
	}
	return "", name
}

func (t *Telemetry) toolAttributes(p *place, s *belay.Span) *attributes {
	a := attributesOf(p)
	a.add(operation.String("execute_tool"), semconv.GenAIToolCallID(s.Call.ID), semconv.GenAIToolType("function"))
	if tool := t.toolName(s); tool != "" {
		a.add(semconv.GenAIToolName(tool))
	}
	if s.Result != nil && s.Result.Class != "" {
		a.add(resultClass.String(string(s.Result.Class)))
	}
	if t.opts.Content {
		a.add(semconv.GenAIToolCallArgumentsKey.String(t.content(withoutSecrets(s.Call.Input))))
		if s.Result != nil {
			a.add(semconv.GenAIToolCallResultKey.String(t.content(s.Result.Text)))
		}
	}
	return a
}

func approvalAttributes(p *place, s *belay.Span) *attributes {
	a, asked := attributesOf(p), s.Approval
	a.add(
		approvalID.String(asked.ID), semconv.GenAIToolName(asked.Tool), semconv.GenAIToolCallID(asked.Call), askedBy.String(asked.By),
		decidedBy.String(asked.Decided.By), decision.String(allowed(asked.Decided.Allow)),
	)
	return a
}

func allowed(yes bool) string {
	if yes {
		return "allow"
	}
	return "deny"
}

func runAttributes(p *place, r *hook.Run) *attributes {
	a := attributesOf(p)
	a.add(
		runID.String(r.ID), subscription.String(r.Subscription), phaseName.String(r.Phase), originKind.String(r.Origin.Kind.String()), hookState.String(r.State.String()),
	)
	if r.Severity > hook.SeverityPass {
		a.add(severity.String(r.Severity.String()))
	}
	if r.Attempt > 0 {
		a.add(attemptNumber.Int(r.Attempt))
	}
	if r.Job != "" {
		a.add(jobID.String(r.Job))
	}
	return a
}
