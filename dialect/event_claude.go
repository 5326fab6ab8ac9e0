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
			Differs: "`permissionDecision: allow` skips the question only with the grant `approve`; `updatedInput` needs the grant `rewrite_input`, and without it Belay asks you about the original input; a denial counts with every exit code, in text that is not JSON, and before a timeout; a failure (another exit code than 0 and 2) allows and changes nothing",
			Refused: "`permissionDecision: defer` asks",
		},
		{
			Name: "PostToolUse", Kind: PostToolUse, Phase: "tool.post", Source: at("posttooluse"),
			Kept:    "exit code 2 and `decision: block` (the model reads the reason), `additionalContext`, `systemMessage`; only after a call that worked",
			Differs: "`continue: false` tells the model to end the turn; `tool_response` has the text of the result, and `duration_ms` is its time; `updatedToolOutput` needs the grant `rewrite_output`",
		},
		{
			Name: "PostToolUseFailure", Kind: PostToolUseFailure, Phase: "tool.post", Source: at("posttoolusefailure"),
			Kept: "`error`, `additionalContext`, `systemMessage`",
		},
		{
			Name: "Stop", Kind: Stop, Phase: "turn.stop", Source: at("stop"),
			Kept:    "exit code 2, `decision: block` and `hookSpecificOutput.additionalContext` (the model continues), `continue: false` (the turn ends), `stop_hook_active`, `last_assistant_message`",
			Differs: "a turn can be made to continue 8 times, as in Claude Code, but a setting of Belay can lower this",
			Refused: "`background_tasks` and `session_crons` are not there",
		},
		{
			Name: "SessionStart", Kind: SessionStart, Phase: "session.start", Source: at("sessionstart"),
			Kept:    "plain output and `additionalContext` reach the model; `source` startup, resume and fork; matchers on `source`",
			Refused: "the sources clear and compact; `CLAUDE_ENV_FILE`, `initialUserMessage`, `sessionTitle`, `watchPaths`, `reloadSkills`",
		},
		{
			Name: "UserPromptSubmit", Kind: UserPromptSubmit, Phase: "user.prompt.submit", Source: at("userpromptsubmit"),
			Kept: "exit code 2 and `decision: block` (the prompt is not sent), plain output and `additionalContext` reach the model, `continue: false`",
		},
		{
			Name: "SubagentStop", Kind: SubagentStop, Phase: "turn.stop", Source: at("subagentstop"),
			Kept:    "exit code 2, `decision: block` and `hookSpecificOutput.additionalContext` (the subagent continues and reads the reason), `continue: false` (the subagent ends), matchers on the subagent, `agent_id`, `agent_type`, `agent_transcript_path`, `stop_hook_active`, `last_assistant_message`",
			Differs: "Belay limits how often a subagent can be made to continue; a subagent that is no agent of Belay, such as a Go function, runs no such hook",
		},
		{
			Name: "SubagentStart", Kind: SubagentStart, Phase: "subagent.start", Source: at("subagentstart"),
			Kept: "matchers on the subagent, `agent_type`, `additionalContext`",
		},
		{
			Name: "SessionEnd", Kind: SessionEnd, Phase: "session.end", Source: at("sessionend"),
			Kept:    "`reason`; the output is ignored; 1.5 seconds, unless the hook has a timeout",
			Differs: "`reason` is always other",
		},
		{
			Name: "PreCompact", Kind: PreCompact, Phase: "turn.pre_compaction", Source: at("precompact"),
			Kept:    "matchers on `trigger`; the output becomes instructions for the summary, as Claude Code does (its docs do not say so)",
			Refused: "a hook cannot stop a compaction (exit code 2, `decision: block`): Belay shows its reason",
		},
		{
			Name: "Notification", Kind: Notification, Phase: "approval.request", Source: at("notification"),
			Kept:    "`message`, `notification_type: permission_prompt`; the output is ignored",
			Refused: "other notifications, such as idle_prompt",
		},
		{
			Name: "PermissionRequest", Kind: PermissionRequest, Phase: "approval.request", Source: at("permissionrequest"),
			Kept:    "`decision.behavior` allow and deny, with the message",
			Differs: "the hook runs only with the grant `approve`, because it decides instead of a person; exit code 2 denies, and Claude Code ignores it",
			Refused: "`updatedInput`, `updatedPermissions`",
		},
		refusedEvent("PostToolBatch", claudeSource), refusedEvent("PermissionDenied", claudeSource), refusedEvent("UserPromptExpansion", claudeSource),
		refusedEvent("StopFailure", claudeSource), refusedEvent("PostCompact", claudeSource), refusedEvent("Setup", claudeSource), refusedEvent("InstructionsLoaded", claudeSource),
		refusedEvent("ConfigChange", claudeSource), refusedEvent("CwdChanged", claudeSource), refusedEvent("FileChanged", claudeSource), refusedEvent("WorktreeCreate", claudeSource),
		refusedEvent("WorktreeRemove", claudeSource), refusedEvent("TeammateIdle", claudeSource), refusedEvent("TaskCreated", claudeSource), refusedEvent("TaskCompleted", claudeSource),
		refusedEvent("MessageDisplay", claudeSource), refusedEvent("DirectoryAdded", claudeSource), refusedEvent("Elicitation", claudeSource), refusedEvent("ElicitationResult", claudeSource),
	}
}

// refusedEvent is an event that Belay knows and has no phase for.
func refusedEvent(name, source string) Event {
	return Event{Name: name, Refused: "Belay has no such event: the hook does not run, and `belay check` says so", Source: source}
}
