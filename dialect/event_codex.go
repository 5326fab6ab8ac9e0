package dialect

// codexSource is where Codex defines its hooks: its schemas and its parser of outputs.
const codexSource = "https://github.com/openai/codex/tree/main/codex-rs/hooks"

func codexEvents() []Event {
	return []Event{
		{
			Name: "PreToolUse", Kind: PreToolUse, Phase: "tool.pre", Source: codexSource,
			Kept:    "exit code 2, `permissionDecision: deny`, `decision: block`, `additionalContext`; files are changed by `apply_patch`, which the matchers Write and Edit match too",
			Differs: "exit code 2 without a reason denies here, and is a failure in Codex; `permissionDecision: ask` asks here; `updatedInput` needs the grant `rewrite_input`",
		},
		{
			Name: "PermissionRequest", Kind: PermissionRequest, Phase: "approval.request", Source: codexSource,
			Kept: "`decision.behavior` allow and deny, with the message", Differs: "the hook runs only with the grant `approve`, because it decides instead of a person",
		},
		{
			Name: "PostToolUse", Kind: PostToolUse, Phase: "tool.post", Source: codexSource,
			Kept: "exit code 2 and `decision: block` (the model reads the reason), `additionalContext`", Differs: "`continue: false` tells the model to end the turn",
		},
		{
			Name: "Stop", Kind: Stop, Phase: "turn.stop", Source: codexSource,
			Kept: "exit code 2 and `decision: block` (the model continues), `continue: false`, `stop_hook_active`, `last_assistant_message`",
		},
		{
			Name: "SessionStart", Kind: SessionStart, Phase: "session.start", Source: codexSource,
			Kept: "plain output and `additionalContext` reach the model; matchers on `source`",
		},
		{
			Name: "UserPromptSubmit", Kind: UserPromptSubmit, Phase: "user.prompt.submit", Source: codexSource,
			Kept: "exit code 2 and `decision: block`; plain output and `additionalContext` reach the model",
		},
		{
			Name: "SubagentStart", Kind: SubagentStart, Phase: "subagent.start", Source: codexSource,
			Kept: "matchers on the subagent, `additionalContext`",
		},
		{
			Name: "SubagentStop", Kind: SubagentStop, Phase: "turn.stop", Source: "https://github.com/openai/codex/pull/22873",
			Kept:    "exit code 2 and `decision: block` (the subagent continues and reads the reason), `continue: false` (the subagent ends), matchers on the subagent, `agent_id`, `agent_type`, `agent_transcript_path`, `stop_hook_active`, `last_assistant_message`",
			Differs: "Belay limits how often a subagent can be made to continue",
		},
		{
			Name: "SessionEnd", Kind: SessionEnd, Phase: "session.end", Source: codexSource,
			Kept: "the output is ignored", Differs: "`reason` is always other",
		},
		{
			Name: "PreCompact", Kind: PreCompact, Phase: "turn.pre_compaction", Source: codexSource,
			Kept: "matchers on `trigger`", Refused: "a hook cannot stop a compaction",
		},
		refusedEvent("PostCompact", codexSource),
	}
}
