package dialect

// geminiSource is where Gemini CLI defines its hooks.
const geminiSource = "https://geminicli.com/docs/hooks/reference"

func geminiEvents() []Event {
	at := func(anchor string) string { return geminiSource + "#" + anchor }
	return []Event{
		{
			Name: "BeforeTool", Kind: PreToolUse, Phase: "tool.pre", Source: at("beforetool"),
			Kept:    "exit code 2, `decision` deny and block, `systemMessage`, `continue: false` (ends the turn)",
			Differs: "`hookSpecificOutput.tool_input` needs the grant `rewrite_input`, and without it Belay asks you about the original input",
		},
		{
			Name: "AfterTool", Kind: PostToolUse, Phase: "tool.post", Source: at("aftertool"),
			Kept:    "`additionalContext`, `systemMessage`; also after a call that failed",
			Differs: "exit code 2 and `decision: deny` hide the result only with the grant `rewrite_output`; without it the model reads the reason beside the result; `continue: false` tells the model to end the turn",
		},
		{
			Name: "BeforeAgent", Kind: UserPromptSubmit, Phase: "user.prompt.submit", Source: at("beforeagent"),
			Kept: "exit code 2 and `decision: deny` (the prompt is not sent), `additionalContext`",
		},
		{
			Name: "AfterAgent", Kind: Stop, Phase: "turn.stop", Source: at("afteragent"),
			Kept:    "exit code 2 and `decision: deny` (the model continues), `continue: false`, `stop_hook_active`, `prompt_response`",
			Refused: "`clearContext`; `prompt` is empty",
		},
		{
			Name: "SessionStart", Kind: SessionStart, Phase: "session.start", Source: at("sessionstart"),
			Kept: "`additionalContext`, `systemMessage`, matchers on `source`",
		},
		{
			Name: "SessionEnd", Kind: SessionEnd, Phase: "session.end", Source: at("sessionend"),
			Kept: "the output is ignored", Differs: "`reason` is always other",
		},
		{
			Name: "PreCompress", Kind: PreCompact, Phase: "turn.pre_compaction", Source: at("precompress"),
			Kept: "matchers on `trigger`; the hook cannot stop the compaction",
		},
		{
			Name: "Notification", Kind: Notification, Phase: "approval.request", Source: at("notification"),
			Kept: "`notification_type: ToolPermission`, `message`; the output is ignored",
		},
		refusedEvent("BeforeModel", geminiSource), refusedEvent("AfterModel", geminiSource), refusedEvent("BeforeToolSelection", geminiSource),
	}
}
