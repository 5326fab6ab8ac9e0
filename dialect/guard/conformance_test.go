package guard_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/hook"
)

// recorded are events as the agents write them.
var recorded = map[dialect.Vendor]map[string]string{
	dialect.ClaudeCode: {
		"shell":   `{"session_id":"s1","transcript_path":"/srv/transcripts/s1.jsonl","cwd":"/srv/shop","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"git push","description":"Push"},"tool_use_id":"toolu_1"}`,
		"write":   `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"/srv/shop/a.go","content":"package a"},"tool_use_id":"toolu_2"}`,
		"post":    `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"env"},"tool_response":{"stdout":"KEY=1","stderr":""},"tool_use_id":"toolu_1"}`,
		"prompt":  `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"UserPromptSubmit","prompt":"deploy"}`,
		"stop":    `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done"}`,
		"start":   `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"SessionStart","source":"startup"}`,
		"end":     `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"SessionEnd","reason":"exit"}`,
		"sub":     `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"SubagentStop","agent_type":"Explore","agent_id":"a1"}`,
		"compact": `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"PreCompact","trigger":"manual"}`,
		"other":   `{"session_id":"s1","cwd":"/srv/shop","hook_event_name":"Notification","message":"waiting"}`,
	},
	dialect.Codex: {
		"shell":   `{"session_id":"c1","turn_id":"u1","cwd":"/srv/shop","hook_event_name":"PreToolUse","model":"gpt","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"git push"},"tool_use_id":"call_1"}`,
		"post":    `{"session_id":"c1","turn_id":"u1","cwd":"/srv/shop","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"env"},"tool_response":"KEY=1","tool_use_id":"call_1"}`,
		"prompt":  `{"session_id":"c1","turn_id":"u1","cwd":"/srv/shop","hook_event_name":"UserPromptSubmit","prompt":"deploy"}`,
		"stop":    `{"session_id":"c1","turn_id":"u1","cwd":"/srv/shop","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done"}`,
		"start":   `{"session_id":"c1","cwd":"/srv/shop","hook_event_name":"SessionStart","source":"startup"}`,
		"compact": `{"session_id":"c1","cwd":"/srv/shop","hook_event_name":"PreCompact","trigger":"auto"}`,
	},
	dialect.GeminiCLI: {
		"shell":   `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"BeforeTool","timestamp":"2026-11-18T16:00:00Z","tool_name":"run_shell_command","tool_input":{"command":"git push","description":"Push"}}`,
		"post":    `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"AfterTool","tool_name":"run_shell_command","tool_input":{"command":"env"},"tool_response":{"llmContent":"KEY=1","returnDisplay":"KEY=1"}}`,
		"prompt":  `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"BeforeAgent","prompt":"deploy"}`,
		"stop":    `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"AfterAgent","prompt":"deploy","prompt_response":"done","stop_hook_active":false}`,
		"start":   `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"SessionStart","source":"startup"}`,
		"end":     `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"SessionEnd","reason":"exit"}`,
		"compact": `{"session_id":"g1","cwd":"/srv/shop","hook_event_name":"PreCompress","trigger":"auto"}`,
	},
	dialect.Cursor: {
		"shell":   `{"conversation_id":"k1","generation_id":"u1","hook_event_name":"beforeShellExecution","workspace_roots":["/srv/shop"],"command":"git push","cwd":"/srv/shop"}`,
		"tool":    `{"conversation_id":"k1","generation_id":"u1","hook_event_name":"preToolUse","workspace_roots":["/srv/shop"],"cwd":"/srv/shop","tool_name":"Shell","tool_input":{"command":"git push"},"tool_use_id":"t1"}`,
		"mcp":     `{"conversation_id":"k1","hook_event_name":"beforeMCPExecution","tool_name":"query","tool_input":"{\"sql\":\"select 1\"}","command":"npx db"}`,
		"read":    `{"conversation_id":"k1","hook_event_name":"beforeReadFile","file_path":"/srv/shop/.env","content":"KEY=1"}`,
		"post":    `{"conversation_id":"k1","hook_event_name":"postToolUse","tool_name":"Shell","tool_input":{"command":"env"},"tool_output":"KEY=1","tool_use_id":"t1"}`,
		"edited":  `{"conversation_id":"k1","hook_event_name":"afterFileEdit","file_path":"/srv/shop/a.go","edits":[{"old_string":"a","new_string":"b"}]}`,
		"prompt":  `{"conversation_id":"k1","hook_event_name":"beforeSubmitPrompt","prompt":"deploy","attachments":[]}`,
		"stop":    `{"conversation_id":"k1","hook_event_name":"stop","status":"completed","loop_count":0}`,
		"start":   `{"conversation_id":"k1","hook_event_name":"sessionStart","session_id":"k1"}`,
		"end":     `{"conversation_id":"k1","hook_event_name":"sessionEnd","reason":"completed"}`,
		"compact": `{"conversation_id":"k1","hook_event_name":"preCompact","trigger":"auto"}`,
	},
	dialect.Copilot: {
		"preToolUse":          `{"sessionId":"p1","timestamp":1704614400000,"cwd":"/srv/shop","toolName":"bash","toolArgs":"{\"command\":\"git push\",\"description\":\"Push\"}"}`,
		"PreToolUse":          `{"session_id":"p1","hook_event_name":"PreToolUse","cwd":"/srv/shop","tool_name":"bash","tool_input":{"command":"git push"}}`,
		"postToolUse":         `{"sessionId":"p1","cwd":"/srv/shop","toolName":"bash","toolArgs":{"command":"env"},"toolResult":{"resultType":"success","textResultForLlm":"KEY=1"}}`,
		"postToolUseFailure":  `{"sessionId":"p1","cwd":"/srv/shop","toolName":"bash","toolArgs":{"command":"env"},"error":"exit code 1"}`,
		"userPromptSubmitted": `{"sessionId":"p1","cwd":"/srv/shop","prompt":"deploy"}`,
		"agentStop":           `{"sessionId":"p1","cwd":"/srv/shop","transcriptPath":"/t","stopReason":"end_turn"}`,
		"sessionStart":        `{"sessionId":"p1","cwd":"/srv/shop","source":"new"}`,
		"sessionEnd":          `{"sessionId":"p1","cwd":"/srv/shop","reason":"complete"}`,
		"preCompact":          `{"sessionId":"p1","cwd":"/srv/shop","trigger":"auto"}`,
	},
}

// expectation is what the process must print for an event and an answer.
type expectation struct {
	name   string
	agent  dialect.Vendor
	event  string // of recorded
	floor  belay.Authorizer
	hook   hook.Subscription
	stdout string
	stderr string // a part of it
	code   int
}

var (
	denied   = always(belay.ToolDeny, "no pushes")
	asked    = always(belay.ToolAsk, "may it push?")
	halted   = verdict(belay.Halt("enough"))
	reminded = verdict(belay.ToolVerdict{Aside: belay.Aside{Context: belay.Tell("be careful")}})
	none     hook.Subscription
)

func TestAnswersAreInTheDialectOfTheAgent(t *testing.T) { // SPEC B-05, B-08
	t.Parallel()
	redacted := "KEY=?"
	told := belay.Aside{Context: belay.Tell("use make")}
	for _, want := range []expectation{
		// Claude Code
		{"pass says nothing", dialect.ClaudeCode, "shell", passes, none, ``, "", 0},
		{"deny", dialect.ClaudeCode, "shell", denied, none, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Belay (zone 4): no pushes"}}`, "", 0},
		{"ask asks the user", dialect.ClaudeCode, "shell", asked, none, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"Belay (zone 4): may it push?"}}`, "", 0},
		{"halt denies and ends the turn", dialect.ClaudeCode, "shell", passes, halted, `{"continue":false,"stopReason":"Belay (verdict): enough","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Belay (verdict): enough"}}`, "", 0},
		{"a new input keeps what Belay does not know", dialect.ClaudeCode, "shell", passes, rewrites(`{"command":"git push --dry-run","description":"Push"}`), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"git push --dry-run","description":"Push"}}}`, "", 0},
		{"a new path is absolute", dialect.ClaudeCode, "write", passes, rewrites(`{"path":"b.go","content":"package a"}`), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"content":"package a","file_path":"/srv/shop/b.go"}}}`, "", 0},
		{"a new input that cannot be expressed denies", dialect.ClaudeCode, "write", passes, rewrites(`{"path":"b.go","content":"x","mode":"0600"}`), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Belay (tool.pre): rewrites wants to change the input of this call, and Belay cannot tell Claude Code the new input: the call has no input \"mode\""}}`, "", 0},
		{"context", dialect.ClaudeCode, "shell", passes, reminded, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"be careful"}}`, "", 0},
		{"context after a call", dialect.ClaudeCode, "post", passes, reaction(belay.ToolReaction{Aside: told}), `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"use make"}}`, "", 0},
		{"a new result ends the turn", dialect.ClaudeCode, "post", passes, reaction(belay.RewriteResult(redacted)), `{"continue":false,"stopReason":"Claude Code cannot change this result, and a hook wants to change it"}`, "", 0},
		{"prompt denied", dialect.ClaudeCode, "prompt", passes, prompt(belay.DenyPrompt("not today"), 0), `{"decision":"block","reason":"Belay (prompt): not today"}`, "", 0},
		{"prompt with context", dialect.ClaudeCode, "prompt", passes, prompt(belay.PromptVerdict{Aside: told}, 0), `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"use make"}}`, "", 0},
		{"a rewritten prompt is blocked", dialect.ClaudeCode, "prompt", passes, prompt(belay.RewritePrompt("deploy to staging"), hook.CanRewritePrompt), `{"decision":"block","reason":"a hook wants to change this message, and Claude Code cannot change messages. Send the message that the hook wants: deploy to staging"}`, "", 0},
		{"an answered prompt is blocked with the answer", dialect.ClaudeCode, "prompt", passes, prompt(belay.AnswerPrompt("It is Friday."), hook.CanAnswer), `{"decision":"block","reason":"It is Friday."}`, "", 0},
		{"stop continues", dialect.ClaudeCode, "stop", passes, stop(belay.Continue("run the tests")), `{"decision":"block","reason":"run the tests"}`, "", 0},
		{"session start with context", dialect.ClaudeCode, "start", passes, start(told), `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"use make"}}`, "", 0},
		{"session end", dialect.ClaudeCode, "end", passes, none, ``, "", 0},
		{"subagent stop", dialect.ClaudeCode, "sub", passes, none, ``, "", 0},
		{"compaction", dialect.ClaudeCode, "compact", passes, none, ``, "", 0},
		{"another event", dialect.ClaudeCode, "other", denied, none, ``, "", 0},
		// Codex
		{"pass says nothing", dialect.Codex, "shell", passes, none, ``, "", 0},
		{"deny", dialect.Codex, "shell", denied, none, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Belay (zone 4): no pushes"}}`, "", 0},
		{"halt denies", dialect.Codex, "shell", passes, halted, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"Belay (verdict): enough"}}`, "", 0},
		{"a new input needs allow", dialect.Codex, "shell", passes, rewrites(`{"command":"git push --dry-run"}`), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"git push --dry-run"}}}`, "", 0},
		{"context", dialect.Codex, "shell", passes, reminded, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"be careful"}}`, "", 0},
		{"a new result replaces the result", dialect.Codex, "post", passes, reaction(belay.RewriteResult(redacted)), `{"decision":"block","reason":"KEY=?"}`, "", 0},
		{"an empty result still replaces the result", dialect.Codex, "post", passes, reaction(belay.RewriteResult("")), `{"decision":"block","reason":"(a hook removed the text)"}`, "", 0},
		{"prompt denied", dialect.Codex, "prompt", passes, prompt(belay.DenyPrompt("not today"), 0), `{"decision":"block","reason":"Belay (prompt): not today"}`, "", 0},
		{"stop continues", dialect.Codex, "stop", passes, stop(belay.Continue("run the tests")), `{"decision":"block","reason":"run the tests"}`, "", 0},
		{"session start with context", dialect.Codex, "start", passes, start(told), `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"use make"}}`, "", 0},
		{"compaction", dialect.Codex, "compact", passes, none, ``, "", 0},
		// Gemini CLI
		{"pass says nothing", dialect.GeminiCLI, "shell", passes, none, ``, "", 0},
		{"deny", dialect.GeminiCLI, "shell", denied, none, `{"decision":"deny","reason":"Belay (zone 4): no pushes"}`, "", 0},
		{"halt denies and ends the turn", dialect.GeminiCLI, "shell", passes, halted, `{"continue":false,"stopReason":"Belay (verdict): enough","decision":"deny","reason":"Belay (verdict): enough"}`, "", 0},
		{"a new input", dialect.GeminiCLI, "shell", passes, rewrites(`{"command":"git push --dry-run","description":"Push"}`), `{"hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"git push --dry-run","description":"Push"}}}`, "", 0},
		{"a removed input denies, because Gemini CLI merges inputs", dialect.GeminiCLI, "shell", passes, rewrites(`{"command":"git push"}`), `{"decision":"deny","reason":"Belay (tool.pre): rewrites wants to change the input of this call, and Belay cannot tell Gemini CLI the new input: the input \"description\" cannot be removed"}`, "", 0},
		{"context after a call", dialect.GeminiCLI, "post", passes, reaction(belay.ToolReaction{Aside: told}), `{"hookSpecificOutput":{"hookEventName":"AfterTool","additionalContext":"use make"}}`, "", 0},
		{"a new result replaces the result", dialect.GeminiCLI, "post", passes, reaction(belay.RewriteResult(redacted)), `{"decision":"deny","reason":"KEY=?"}`, "", 0},
		{"prompt denied", dialect.GeminiCLI, "prompt", passes, prompt(belay.DenyPrompt("not today"), 0), `{"decision":"deny","reason":"Belay (prompt): not today"}`, "", 0},
		{"stop continues", dialect.GeminiCLI, "stop", passes, stop(belay.Continue("run the tests")), `{"decision":"deny","reason":"run the tests"}`, "", 0},
		{"session start with context", dialect.GeminiCLI, "start", passes, start(told), `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"use make"}}`, "", 0},
		{"session end", dialect.GeminiCLI, "end", passes, none, ``, "", 0},
		{"compaction", dialect.GeminiCLI, "compact", passes, none, ``, "", 0},
		// Cursor
		{"pass decides nothing", dialect.Cursor, "shell", passes, none, `{}`, "", 0},
		{"deny a command", dialect.Cursor, "shell", denied, none, `{"permission":"deny","user_message":"Belay (zone 4): no pushes","agent_message":"Belay (zone 4): no pushes"}`, "", 0},
		{"ask about a command", dialect.Cursor, "shell", asked, none, `{"permission":"ask","user_message":"Belay (zone 4): may it push?","agent_message":"Belay (zone 4): may it push?"}`, "", 0},
		{"ask about an MCP tool", dialect.Cursor, "mcp", asked, none, `{"permission":"ask","user_message":"Belay (zone 4): may it push?","agent_message":"Belay (zone 4): may it push?"}`, "", 0},
		{"halt denies", dialect.Cursor, "tool", passes, halted, `{"permission":"deny","user_message":"Belay (verdict): enough","agent_message":"Belay (verdict): enough"}`, "", 0},
		{"a new input", dialect.Cursor, "tool", passes, rewrites(`{"command":"git push --dry-run"}`), `{"updated_input":{"command":"git push --dry-run"}}`, "", 0},
		{"a new input of a command denies", dialect.Cursor, "shell", passes, rewrites(`{"command":"git push --dry-run"}`), `{"permission":"deny","user_message":"Cursor cannot change the input of this call, and a hook wants to change it","agent_message":"Cursor cannot change the input of this call, and a hook wants to change it"}`, "", 0},
		{"deny a file", dialect.Cursor, "read", denied, none, `{"permission":"deny","user_message":"Belay (zone 4): no pushes","agent_message":"Belay (zone 4): no pushes"}`, "", 0},
		{"context after a call", dialect.Cursor, "post", passes, reaction(belay.ToolReaction{Aside: told}), `{"additional_context":"use make"}`, "", 0},
		{"a new result is lost, and Belay says so", dialect.Cursor, "post", passes, reaction(belay.RewriteResult(redacted)), `{}`, "belay: Cursor cannot change this result, and a hook wants to change it", 0},
		{"an edit that has happened", dialect.Cursor, "edited", passes, none, `{}`, "", 0},
		{"prompt denied", dialect.Cursor, "prompt", passes, prompt(belay.DenyPrompt("not today"), 0), `{"continue":false,"user_message":"Belay (prompt): not today"}`, "", 0},
		{"stop continues", dialect.Cursor, "stop", passes, stop(belay.Continue("run the tests")), `{"followup_message":"run the tests"}`, "", 0},
		{"session start with context", dialect.Cursor, "start", passes, start(told), `{"additional_context":"use make"}`, "", 0},
		{"session end", dialect.Cursor, "end", passes, none, `{}`, "", 0},
		{"compaction", dialect.Cursor, "compact", passes, none, `{}`, "", 0},
		// GitHub Copilot
		{"pass says nothing", dialect.Copilot, "preToolUse", passes, none, ``, "", 0},
		{"deny", dialect.Copilot, "preToolUse", denied, none, `{"permissionDecision":"deny","permissionDecisionReason":"Belay (zone 4): no pushes"}`, "", 0},
		{"deny in the other spelling", dialect.Copilot, "PreToolUse", denied, none, `{"permissionDecision":"deny","permissionDecisionReason":"Belay (zone 4): no pushes"}`, "", 0},
		{"ask asks the user", dialect.Copilot, "preToolUse", asked, none, `{"permissionDecision":"ask","permissionDecisionReason":"Belay (zone 4): may it push?"}`, "", 0},
		{"halt denies", dialect.Copilot, "preToolUse", passes, halted, `{"permissionDecision":"deny","permissionDecisionReason":"Belay (verdict): enough"}`, "", 0},
		{"a new input is an object", dialect.Copilot, "preToolUse", passes, rewrites(`{"command":"git push --dry-run","description":"Push"}`), `{"modifiedArgs":{"command":"git push --dry-run","description":"Push"}}`, "", 0},
		{"a new result", dialect.Copilot, "postToolUse", passes, reaction(belay.RewriteResult(redacted)), `{"modifiedResult":{"resultType":"success","textResultForLlm":"KEY=?"}}`, "", 0},
		{"context after a call", dialect.Copilot, "postToolUse", passes, reaction(belay.ToolReaction{Aside: told}), `{"additionalContext":"use make"}`, "", 0},
		{"a new result of a failure is lost, and Belay says so", dialect.Copilot, "postToolUseFailure", passes, reaction(belay.RewriteResult(redacted)), ``, "belay: GitHub Copilot cannot change this result, and a hook wants to change it", 0},
		{"a denied prompt is lost, and Belay says so", dialect.Copilot, "userPromptSubmitted", passes, prompt(belay.DenyPrompt("not today"), 0), ``, "belay: GitHub Copilot cannot deny here: Belay (prompt): not today", 0},
		{"stop continues", dialect.Copilot, "agentStop", passes, stop(belay.Continue("run the tests")), `{"decision":"block","reason":"run the tests"}`, "", 0},
		{"session start with context", dialect.Copilot, "sessionStart", passes, start(told), `{"additionalContext":"use make"}`, "", 0},
		{"session end", dialect.Copilot, "sessionEnd", passes, none, ``, "", 0},
		{"compaction", dialect.Copilot, "preCompact", passes, none, ``, "", 0},
	} {
		t.Run(string(want.agent)+"/"+want.event+"/"+want.name, func(t *testing.T) {
			t.Parallel()
			var hooks []hook.Subscription
			if want.hook != none {
				hooks = append(hooks, want.hook)
			}
			event := ""
			if want.agent == dialect.Copilot {
				event = want.event
			}
			stdin, ok := recorded[want.agent][want.event]
			if !ok {
				t.Fatal("there is no such event")
			}
			got := newEngine(t, want.floor, hooks...).answer(t, want.agent, event, stdin)
			if stdout := strings.TrimSuffix(string(got.Stdout), "\n"); stdout != want.stdout {
				t.Errorf("standard output:\n%s\nwant:\n%s", stdout, want.stdout)
			}
			if stderr := string(got.Stderr); (want.stderr == "") != (stderr == "") || !strings.Contains(stderr, want.stderr) {
				t.Errorf("standard error: %q, want %q", stderr, want.stderr)
			}
			if got.Code != want.code {
				t.Errorf("exit code %d, want %d", got.Code, want.code)
			}
		})
	}
}
