package belay

import (
	"slices"

	"github.com/belay-run/belay/hook"
)

// This table lists the phases, mostly in the order in which a turn reaches them.
// docs/hooks.md and the JSON Schemas are made from this table. The types of a phase's
// input and answer are in the files phase_*.go.

// SessionStart fires when a session is opened, before its first model request. The source
// is new, resumed, forked or recovered.
var SessionStart = define(hook.Definition[SessionOpened, Aside]{
	Name:         "session.start",
	Kind:         hook.Collect,
	May:          "add reminders",
	Fires:        "when a session is opened (`source`: new, resumed, forked, recovered), before its first model request",
	Capabilities: besides,
	Labels:       labels[SessionOpened]{"source": SessionOpened.Source},
	Merge:        mergeAside,
})

// UserPromptSubmit fires for each user message, before any other code sees the message.
var UserPromptSubmit = define(hook.Definition[UserPrompt, PromptVerdict]{
	Name:         "user.prompt.submit",
	Kind:         hook.Gate,
	May:          "deny, rewrite the text, answer in the model's place, add context",
	Fires:        "for each user message, before any other code sees it",
	Capabilities: besides | hook.CanBlock | hook.CanRewritePrompt | hook.CanAnswer,
	Merge:        mergePrompt,
	Rewrite:      UserPrompt.rewritten,
	Closed:       func(p hook.Problem) (PromptVerdict, bool) { return DenyPrompt(p.Reason()), true },
	Verdict:      func(v PromptVerdict) PromptVerdict { return PromptVerdict{Decision: v.Decision, Reason: v.Reason} },
})

// TurnPrePolicy fires at the start of a turn, after UserPromptSubmit and the directives.
var TurnPrePolicy = define(hook.Definition[TurnBegun, TurnPolicy]{
	Name:         "turn.pre_policy",
	Kind:         hook.Collect,
	May:          "set turn policy",
	Fires:        "at the start of a turn",
	Capabilities: besides | hook.CanSetPolicy,
	Merge:        mergePolicy,
})

// TurnPrePromptContext fires after TurnPrePolicy.
var TurnPrePromptContext = define(hook.Definition[TurnSoFar, PromptContext]{
	Name:         "turn.pre_prompt_context",
	Kind:         hook.Collect,
	May:          "add prompt context",
	Fires:        "after `turn.pre_policy`",
	Capabilities: besides,
	Merge:        mergePromptContext,
})

// TurnPostPreflightPromptContext fires when the preflight plan exists. A [Planner] made the
// plan, or Belay made it from the user's text. The input has the plan and the context so
// far.
var TurnPostPreflightPromptContext = define(hook.Definition[Preflight, PromptContext]{
	Name: "turn.post_preflight_prompt_context",
	Kind: hook.Collect,
	May:  "add prompt context",
	Fires: "after the preflight plan exists (built by a planner, or the fallback plan made from the text); " +
		"sees plan and earlier context",
	Capabilities: besides,
	Merge:        mergePromptContext,
})

// TurnPreToolMaterialization fires before the list of tools is final.
var TurnPreToolMaterialization = define(hook.Definition[TurnSoFar, ToolBundles]{
	Name:         "turn.pre_tool_materialization",
	Kind:         hook.Collect,
	May:          "contribute tool bundles",
	Fires:        "before the list of tools is final",
	Capabilities: besides | hook.CanAddTools,
	Merge:        mergeBundles,
})

// TurnPrePromptCompile fires before the system prompt is built.
var TurnPrePromptCompile = define(hook.Definition[TurnSoFar, PromptSections]{
	Name:         "turn.pre_prompt_compile",
	Kind:         hook.Collect,
	May:          "contribute prompt sections",
	Fires:        "before the system prompt is built",
	Capabilities: besides | hook.CanAddSections,
	Merge:        mergeSections,
})

// TurnPostPromptCompile fires when the prompt is built. The input lists the parts of the
// prompt with their subscription, size and hash.
var TurnPostPromptCompile = define(hook.Definition[PromptManifest, Note]{
	Name:         "turn.post_prompt_compile",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "when the prompt is built; sees its manifest: which part came from which subscription, sizes, hashes",
	Capabilities: noting,
	Merge:        mergeNote,
})

// ModelPre fires before every request to a model, including retries.
var ModelPre = define(hook.Definition[ModelRequest, Aside]{
	Name:         "model.pre",
	Kind:         hook.Collect,
	May:          "add reminders to this request",
	Fires:        "before every request to the model, including retries",
	Capabilities: besides,
	Labels:       labels[ModelRequest]{"model": ModelRequest.Model},
	Merge:        mergeAside,
})

// ModelPost fires after a response was stored. The input has the stop reason, the tokens,
// the cost and the number of tool calls.
var ModelPost = define(hook.Definition[ModelResponse, Note]{
	Name: "model.post",
	Kind: hook.Observe,
	May:  "note",
	Fires: "after each successful response is stored: stop reason, tokens in, out and cached, cost, " +
		"tool-call count",
	Capabilities: noting,
	Labels: labels[ModelResponse]{
		"model":       ModelResponse.Model,
		"stop_reason": ModelResponse.StopReason,
	},
	Merge: mergeNote,
})

// ToolPre fires before each call that has a known tool and a valid input.
var ToolPre = define(hook.Definition[ToolCall, ToolVerdict]{
	Name:         "tool.pre",
	Kind:         hook.Gate,
	May:          "Pass, Ask, Deny, Halt; add context; rewrite the input where granted",
	Fires:        "before each call that has a known tool and a valid input",
	Capabilities: besides | hook.CanBlock | hook.CanAsk | hook.CanRewriteInput,
	Labels:       labels[ToolCall]{"tool": ToolCall.Tool},
	Merge:        mergeTool,
	Rewrite:      ToolCall.rewritten,
	Sound:        ToolCall.sound,
	Closed:       func(p hook.Problem) (ToolVerdict, bool) { return Deny(p.Reason()), true },
	Verdict:      func(v ToolVerdict) ToolVerdict { return ToolVerdict{Decision: v.Decision, Reason: v.Reason} },
})

// ApprovalRequest fires when the merged answer about a call is Ask and no [Grant] covers
// the call.
var ApprovalRequest = define(hook.Definition[ApprovalAsked, ApprovalVerdict]{
	Name:         "approval.request",
	Kind:         hook.Gate,
	May:          "Pass, or Allow / Deny in a person's place where granted",
	Fires:        "when the merged answer is Ask and no grant covers the call",
	Failure:      hook.Open,
	Capabilities: besides | hook.CanApprove,
	Labels:       labels[ApprovalAsked]{"tool": ApprovalAsked.Tool},
	Merge:        mergeApproval,
	Closed:       func(p hook.Problem) (ApprovalVerdict, bool) { return DenyApproval(p.Reason()), true },
	Verdict: func(v ApprovalVerdict) ApprovalVerdict {
		return ApprovalVerdict{Decision: v.Decision, Reason: v.Reason}
	},
})

// ApprovalDecided fires when a person, a hook, an expiry or a cancel has decided about an
// approval.
var ApprovalDecided = define(hook.Definition[ApprovalOutcome, Note]{
	Name:         "approval.decided",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "when a person, a hook, an expiry or a cancel has decided about the approval",
	Capabilities: noting,
	Labels:       labels[ApprovalOutcome]{"tool": ApprovalOutcome.Tool, "decision": ApprovalOutcome.Decision},
	Merge:        mergeNote,
})

// ToolPost fires after each call that was started, whether it succeeded, failed, panicked,
// timed out or was aborted.
var ToolPost = define(hook.Definition[ToolResult, ToolReaction]{
	Name:         "tool.post",
	Kind:         hook.Collect,
	May:          "add reminders; rewrite the result where granted",
	Fires:        "after each tool that was started: success, tool error, panic, timeout, abort",
	Capabilities: besides | hook.CanRewriteOutput,
	Labels: labels[ToolResult]{
		"tool":  ToolResult.Tool,
		"class": func(r ToolResult) string { return string(r.Class()) },
	},
	Merge:   mergeReaction,
	Rewrite: ToolResult.rewritten,
	Closed:  withhold,
})

// ToolDenied fires when a call was refused before it started. The input says who refused
// it, and why.
var ToolDenied = define(hook.Definition[DeniedCall, Note]{
	Name:         "tool.denied",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "when a call was refused before it started; the input says who refused it and why",
	Capabilities: noting,
	Labels:       labels[DeniedCall]{"tool": DeniedCall.Tool},
	Merge:        mergeNote,
})

// SubagentStart fires before each child run. SubagentStop fires later for the same run.
var SubagentStart = define(hook.Definition[SubagentCall, SubagentVerdict]{
	Name:         "subagent.start",
	Kind:         hook.Gate,
	May:          "Pass, Deny",
	Fires:        "before each child run; paired with `subagent.stop`",
	Capabilities: besides | hook.CanBlock,
	Labels:       labels[SubagentCall]{"subagent": SubagentCall.Name},
	Merge:        mergeSubagent,
	Closed:       func(p hook.Problem) (SubagentVerdict, bool) { return DenySubagent(p.Reason()), true },
	Verdict: func(v SubagentVerdict) SubagentVerdict {
		return SubagentVerdict{Decision: v.Decision, Reason: v.Reason}
	},
})

// SubagentStop fires after each child run, also if the run parked or was denied.
var SubagentStop = define(hook.Definition[SubagentReturn, Note]{
	Name:         "subagent.stop",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "after each child run; paired with `subagent.start`, except when a parked run is ended",
	Capabilities: noting,
	Labels:       labels[SubagentReturn]{"subagent": SubagentReturn.Name, "status": SubagentReturn.Status},
	Merge:        mergeNote,
})

// TurnStop fires when the model has answered without tool calls. Hooks can make a turn
// continue at most [Limits].Continuations times.
var TurnStop = define(hook.Definition[StopAttempt, StopVerdict]{
	Name:         "turn.stop",
	Kind:         hook.Gate,
	May:          "Pass, or Continue with a reason",
	Fires:        "when the model ends its turn; at most `Limits.Continuations` (default 8) continuations a turn",
	Failure:      hook.Open,
	Capabilities: besides | hook.CanBlock,
	Merge:        mergeStop,
	Closed:       func(p hook.Problem) (StopVerdict, bool) { return Continue(p.Reason()), true },
	Verdict:      func(v StopVerdict) StopVerdict { return StopVerdict{Decision: v.Decision, Reason: v.Reason} },
})

// TurnPreCompaction fires before compaction.
var TurnPreCompaction = define(hook.Definition[CompactionAhead, CompactionAdvice]{
	Name:         "turn.pre_compaction",
	Kind:         hook.Collect,
	May:          "add instructions",
	Fires:        "before compaction",
	Capabilities: besides,
	Labels:       labels[CompactionAhead]{"trigger": CompactionAhead.Trigger},
	Merge:        mergeCompaction,
})

// TurnPostCompaction fires after a compaction, whether it succeeded or failed.
var TurnPostCompaction = define(hook.Definition[CompactionDone, Note]{
	Name:         "turn.post_compaction",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "after a compaction, whether it succeeded or failed",
	Capabilities: noting,
	Labels:       labels[CompactionDone]{"trigger": CompactionDone.Trigger},
	Merge:        mergeNote,
})

// TurnPostTurn fires at the end of every turn, even if the caller left the stream. It does
// not fire when the turn parks. The input has the end reason.
var TurnPostTurn = define(hook.Definition[TurnEnded, Note]{
	Name:         "turn.post_turn",
	Kind:         hook.Observe,
	May:          "note, schedule jobs",
	Fires:        "at the end of every turn, even if the caller left the stream; not when the turn parks",
	Capabilities: noting,
	Labels:       labels[TurnEnded]{"reason": func(t TurnEnded) string { return string(t.Reason()) }},
	Merge:        mergeNote,
})

// Error fires after a failure that ends the turn, just before TurnPostTurn.
var Error = define(hook.Definition[TurnFailure, Note]{
	Name:         "error",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "after a failure that ends the turn, just before `turn.post_turn`",
	Capabilities: noting,
	Labels:       labels[TurnFailure]{"class": TurnFailure.Class},
	Merge:        mergeNote,
})

// SessionEnd fires when the session is closed. The input has the end reason of the last
// turn.
var SessionEnd = define(hook.Definition[SessionClosed, Note]{
	Name:         "session.end",
	Kind:         hook.Observe,
	May:          "note",
	Fires:        "when the session is closed, with the last end reason",
	Capabilities: noting,
	Labels:       labels[SessionClosed]{"reason": func(s SessionClosed) string { return string(s.Reason()) }},
	Merge:        mergeNote,
})

// Phases returns every phase, in the order of docs/hooks.md.
func Phases() []hook.AnyPhase { return slices.Clone(allPhases) }

// allPhases is a variable, so that the compiler does not put its value into the callers of
// Phases: each would generate the methods of every phase again.
var allPhases = []hook.AnyPhase{
	SessionStart, UserPromptSubmit, TurnPrePolicy, TurnPrePromptContext, TurnPostPreflightPromptContext,
	TurnPreToolMaterialization, TurnPrePromptCompile, TurnPostPromptCompile, ModelPre, ModelPost,
	ToolPre, ApprovalRequest, ApprovalDecided, ToolPost, ToolDenied, SubagentStart, SubagentStop,
	TurnStop, TurnPreCompaction, TurnPostCompaction, TurnPostTurn, Error, SessionEnd,
}

// noting has the capabilities of all observe phases. besides has the capabilities that
// every other phase has at least.
const (
	noting  = hook.CanAudit | hook.CanSchedule
	besides = noting | hook.CanAddContext
)
