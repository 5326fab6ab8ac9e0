package dialect

// claudeSource is where Claude Code defines its hooks. Where that page and the behaviour of
// Claude Code differ, the table says which one Belay follows.
const claudeSource = "https://code.claude.com/docs/en/hooks"

func claudeEvents() []Event {
	at := func(anchor string) string { return claudeSource + "#" + anchor }
	return []Event{
		{
			Name: "PreToolUse", Kind: PreToolUse, Phase: "tool.pre", Source: at("pretooluse"),
			Kept:    "exit code 2, `permissionDecision` deny and ask, `decision: block`, `additionalContext`, `systemMessage`, `continue: false` (ends the turn), `onFailure: block`",
			Differs: "`permissionDecision: allow` skips the question only with the grant `approve`; `updatedInput` needs the grant `rewrite_input`, and without it Belay asks you about the original input; a denial counts with every exit code and in text that is not JSON",
			Refused: "`permissionDecision: defer` asks",
		},
		{
			Name: "PostToolUse", Kind: PostToolUse, Phase: "tool.post", Source: at("posttooluse"),
			Kept:    "exit code 2 and `decision: block` (the model reads the reason), `additionalContext`, `systemMessage`; only after a call that worked",
			Differs: "`continue: false` tells the model to end the turn; `tool_response` has the text of the result and no more; `updatedToolOutput` needs the grant `rewrite_output`",
		},
		{
			Name: "PostToolUseFailure", Kind: PostToolUseFailure, Phase: "tool.post", Source: at("posttoolusefailure"),
			Kept: "`error`, `additionalContext`, `systemMessage`",
		},
		{
			Name: "Stop", Kind: Stop, Phase: "turn.stop", Source: at("stop"),
			Kept:    "exit code 2 and `decision: block` (the model continues), `continue: false` (the turn ends), `stop_hook_active`, `last_assistant_message`",
			Differs: "Belay limits how often a turn can be made to continue",
		},
		{
			Name: "SessionStart", Kind: SessionStart, Phase: "session.start", Source: at("sessionstart"),
			Kept:    "plain output and `additionalContext` reach the model; `source` startup and resume; matchers on `source`",
			Differs: "a forked session has the source resume",
			Refused: "the source compact; `CLAUDE_ENV_FILE`",
		},
		{
			Name: "UserPromptSubmit", Kind: UserPromptSubmit, Phase: "user.prompt.submit", Source: at("userpromptsubmit"),
			Kept: "exit code 2 and `decision: block` (the prompt is not sent), plain output and `additionalContext` reach the model, `continue: false`",
		},
		{
			Name: "SubagentStop", Kind: SubagentStop, Phase: "subagent.stop", Source: at("subagentstop"),
			Kept:    "matchers on the subagent, `agent_type`, `systemMessage`",
			Refused: "a hook cannot make a subagent continue: Belay shows its reason",
		},
		{
			Name: "SubagentStart", Kind: SubagentStart, Phase: "subagent.start", Source: at("subagentstart"),
			Kept: "matchers on the subagent, `agent_type`, `additionalContext`",
		},
		{
			Name: "SessionEnd", Kind: SessionEnd, Phase: "session.end", Source: at("sessionend"),
			Kept:    "`reason`; the output is ignored",
			Differs: "`reason` is always other",
		},
		{
			Name: "PreCompact", Kind: PreCompact, Phase: "turn.pre_compaction", Source: at("precompact"),
			Kept:    "matchers on `trigger`; the output becomes instructions for the summary, as Claude Code does (its docs do not say so)",
			Refused: "a hook cannot stop a compaction",
		},
		{
			Name: "Notification", Kind: Notification, Phase: "approval.request", Source: at("notification"),
			Kept:    "`message`, `notification_type: permission_prompt`; the output is ignored",
			Refused: "other notifications, such as idle_prompt",
		},
		{
			Name: "PermissionRequest", Kind: PermissionRequest, Phase: "approval.request", Source: at("permissionrequest"),
			Kept:    "`decision.behavior` allow and deny, with the message; exit code 2",
			Differs: "the hook runs only with the grant `approve`, because it decides instead of a person",
			Refused: "`updatedInput`, `updatedPermissions`",
		},
		refusedEvent("PostToolUseBatch", claudeSource), refusedEvent("PermissionDenied", claudeSource), refusedEvent("UserPromptExpansion", claudeSource),
		refusedEvent("StopFailure", claudeSource), refusedEvent("PostCompact", claudeSource), refusedEvent("Setup", claudeSource), refusedEvent("InstructionsLoaded", claudeSource),
		refusedEvent("ConfigChange", claudeSource), refusedEvent("CwdChanged", claudeSource), refusedEvent("FileChanged", claudeSource), refusedEvent("WorktreeCreate", claudeSource),
		refusedEvent("WorktreeRemove", claudeSource), refusedEvent("TeammateIdle", claudeSource), refusedEvent("TaskCreated", claudeSource), refusedEvent("TaskCompleted", claudeSource),
		refusedEvent("Elicitation", claudeSource), refusedEvent("ElicitationResult", claudeSource),
	}
}

// refusedEvent is an event that Belay knows and has no phase for.
func refusedEvent(name, source string) Event {
	return Event{Name: name, Refused: "Belay has no such event: the hook does not run, and `belay check` says so", Source: source}
}
