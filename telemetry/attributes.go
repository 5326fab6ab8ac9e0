package telemetry

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

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

func (t *Telemetry) turnAttributes(p *place, s *belay.Span) []attribute.KeyValue {
	end := s.Turn
	all := make([]attribute.KeyValue, 0, 16)
	all = append(append(all, p.attrs...),
		operation.String("invoke_agent"), agentName.String(s.Name), endReason.String(string(end.Reason)), steps.Int(end.Steps),
		semconv.GenAIUsageInputTokens(inputTokens(end.Usage)), semconv.GenAIUsageOutputTokens(end.Usage.Out), costUSD.Float64(end.Usage.Cost),
	)
	if s.Run != "" {
		all = append(all, childRun.String(s.Run), childDepth.Int(s.Depth))
		if s.Parent != "" {
			all = append(all, parentRun.String(s.Parent))
		}
	}
	if s.Resumed {
		all = append(all, resumed.Bool(true))
	}
	if page := t.pageOf(s.Scope); page != "" && s.Run == "" {
		all = append(all, pageURL.String(page))
	}
	if t.opts.Content {
		all = append(all, semconv.GenAIInputMessagesKey.String(t.content(s.Prompt)), semconv.GenAIOutputMessagesKey.String(t.content(end.Text)))
	}
	return all
}

func (t *Telemetry) modelAttributes(p *place, s *belay.Span) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 20)
	all = append(append(all, p.attrs...), operation.String("chat"))
	if provider, model := splitModel(s.Name); model != "" {
		all = append(all, semconv.GenAIRequestModel(model))
		if provider != "" {
			all = append(all, semconv.GenAIProviderNameKey.String(provider))
		}
	}
	if s.Attempt > 0 {
		all = append(all, attemptNumber.Int(s.Attempt))
	}
	if r := s.Request; r != nil && r.MaxTokens > 0 {
		all = append(all, semconv.GenAIRequestMaxTokens(r.MaxTokens))
	}
	if r := s.Response; r != nil {
		if _, model := splitModel(r.Model); model != "" {
			all = append(all, semconv.GenAIResponseModel(model))
		}
		all = append(all,
			semconv.GenAIResponseFinishReasons(string(r.StopReason)),
			semconv.GenAIUsageInputTokens(inputTokens(r.Usage)), semconv.GenAIUsageOutputTokens(r.Usage.Out), costUSD.Float64(r.Usage.Cost),
		)
		if r.Usage.CacheRead > 0 {
			all = append(all, semconv.GenAIUsageCacheReadInputTokens(r.Usage.CacheRead))
		}
		if r.Usage.CacheWrite > 0 {
			all = append(all, semconv.GenAIUsageCacheCreationInputTokens(r.Usage.CacheWrite))
		}
	}
	if t.opts.Content {
		all = append(all, t.modelContent(s)...)
	}
	return all
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

func (t *Telemetry) toolAttributes(p *place, s *belay.Span) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, 12)
	all = append(append(all, p.attrs...), operation.String("execute_tool"), semconv.GenAIToolCallID(s.Call.ID), semconv.GenAIToolType("function"))
	if !t.isMadeUp(s) {
		all = append(all, semconv.GenAIToolName(s.Name))
	}
	if s.Result != nil && s.Result.Class != "" {
		all = append(all, resultClass.String(string(s.Result.Class)))
	}
	if t.opts.Content {
		all = append(all, semconv.GenAIToolCallArgumentsKey.String(t.content(string(s.Call.Input))))
		if s.Result != nil {
			all = append(all, semconv.GenAIToolCallResultKey.String(t.content(s.Result.Text)))
		}
	}
	return all
}

func approvalAttributes(p *place, s *belay.Span) []attribute.KeyValue {
	a := s.Approval
	return append(slices.Clip(p.attrs),
		approvalID.String(a.ID), semconv.GenAIToolName(a.Tool), semconv.GenAIToolCallID(a.Call), askedBy.String(a.By),
		decidedBy.String(a.Decided.By), decision.String(allowed(a.Decided.Allow)),
	)
}

func allowed(yes bool) string {
	if yes {
		return "allow"
	}
	return "deny"
}

func runAttributes(p *place, r *hook.Run) []attribute.KeyValue {
	all := append(slices.Clip(p.attrs),
		runID.String(r.ID), subscription.String(r.Subscription), phaseName.String(r.Phase), originKind.String(r.Origin.Kind.String()), hookState.String(r.State.String()),
	)
	if r.Severity > hook.SeverityPass {
		all = append(all, severity.String(r.Severity.String()))
	}
	if r.Attempt > 0 {
		all = append(all, attemptNumber.Int(r.Attempt))
	}
	if r.Job != "" {
		all = append(all, jobID.String(r.Job))
	}
	return all
}
