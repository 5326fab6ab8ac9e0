//go:build unix

package claude_test

import (
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/vendorhook/vendorhooktest"
)

func readWith(opts vendorhook.Options) vendorhooktest.Read {
	return func(t *testing.T, project string, file []byte) []*declare.Declaration {
		t.Helper()
		own := opts
		own.Project = project
		r, err := claude.ReadHooks(&own, vendorhook.File{Path: project + "/.claude/settings.json", Text: file})
		if err != nil {
			t.Fatal(err)
		}
		return r.Hooks
	}
}

// says returns a script that prints a text and ends with an exit code.
func says(text, code string) string { return "cat <<'END'\n" + text + "\nEND\nexit " + code }

const (
	edit  = `{"id":"c1","tool":"edit","input":{"path":"src/a.go","old_string":"x","new_string":"y"}}`
	shell = `{"id":"c1","tool":"shell","input":{"command":"git push"}}`
)

// SPEC B-01
func TestHooksBeforeTools(t *testing.T) {
	t.Parallel()
	pre := func(c vendorhooktest.Case) vendorhooktest.Case {
		c.Event, c.Phase = "PreToolUse", "tool.pre"
		if c.Input == "" {
			c.Input = edit
		}
		return c
	}
	vendorhooktest.Run(t, readWith(vendorhook.Options{}), map[string]vendorhooktest.Case{
		"the input is Claude Code's": pre(vendorhooktest.Case{
			Matcher: "Edit|Write", Script: "exit 0",
			Stdin: `{"session_id":"s1","cwd":"PROJECT","hook_event_name":"PreToolUse","permission_mode":"default","tool_name":"Edit","tool_use_id":"c1",
				"tool_input":{"file_path":"PROJECT/src/a.go","old_string":"x","new_string":"y"}}`,
		}),
		"MultiEdit sees an edit": pre(vendorhooktest.Case{Matcher: "MultiEdit", Script: "exit 0", Stdin: `{"tool_name":"MultiEdit","tool_input":{"file_path":"PROJECT/src/a.go","edits":[{"old_string":"x","new_string":"y"}]}}`}),
		"NotebookEdit sees a notebook": pre(vendorhooktest.Case{
			Matcher: "NotebookEdit", Input: `{"id":"c1","tool":"write","input":{"path":"n.ipynb","content":"x"}}`, Script: "exit 0",
			Stdin: `{"tool_name":"NotebookEdit","tool_input":{"notebook_path":"PROJECT/n.ipynb","new_source":"x","edit_mode":"replace"}}`,
		}),
		"NotebookEdit sees no other file": pre(vendorhooktest.Case{Matcher: "NotebookEdit", Silent: true}),
		"another tool does not run it":    pre(vendorhooktest.Case{Matcher: "Bash", Silent: true}),
		"names are exact":                 pre(vendorhooktest.Case{Matcher: "Edi", Silent: true}),
		"a pattern":                       pre(vendorhooktest.Case{Matcher: "Ed.*", Script: "exit 0"}),
		"everything":                      pre(vendorhooktest.Case{Matcher: "*", Script: "exit 0"}),
		"if matches":                      pre(vendorhooktest.Case{Matcher: "Bash", Hook: `"if": "Bash(git push *)"`, Input: shell, Script: "exit 0"}),
		"if does not match":               pre(vendorhooktest.Case{Matcher: "Bash", Hook: `"if": "Bash(rm *)"`, Input: shell, Silent: true}),
		"if sees a part of a command":     pre(vendorhooktest.Case{Matcher: "Bash", Hook: `"if": "Bash(rm *)"`, Input: `{"id":"c","tool":"shell","input":{"command":"cd x && A=1 rm y"}}`, Script: "exit 0"}),
		"if sees a path":                  pre(vendorhooktest.Case{Matcher: "Edit", Hook: `"if": "Edit(*.go)"`, Script: "exit 0"}),
		"if sees another path":            pre(vendorhooktest.Case{Matcher: "Edit", Hook: `"if": "Edit(docs/**)"`, Silent: true}),
		"exit code 2 denies":              pre(vendorhooktest.Case{Script: "echo no secrets >&2; exit 2", Want: `{"decision":"deny","reason":"no secrets"}`}),
		"exit code 2 without a reason":    pre(vendorhooktest.Case{Script: "exit 2", Want: `{"decision":"deny","reason":"the hook pre-tool-use-1 of Claude Code gave no reason"}`}),
		"exit code 2 ignores an approval": pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"permissionDecision":"allow"}}`, "2"), Want: `{"decision":"deny","reason":"the hook pre-tool-use-1 of Claude Code gave no reason"}`}),
		"exit code 1 with JSON asks":      pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}`, "1"), Want: `{"decision":"ask","reason":"sure?"}`}),
		"exit code 1 never allows":        pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"ls"}}}`, "1"), Want: `{}`}),
		"exit code 2 with JSON":           pre(vendorhooktest.Case{Script: "echo from stderr >&2\n" + says(`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"from JSON","additionalContext":"more"}}`, "2"), Want: `{"decision":"deny","reason":"from JSON","context":[{"text":"more"}]}`}),
		"exit code 1 continues":           pre(vendorhooktest.Case{Script: "echo oops >&2; exit 1", Why: "exit code 1"}),
		"a missing program continues":     pre(vendorhooktest.Case{Script: "exit 127", Why: "exit code 127"}),
		"deny":                            pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not here"}}`, "0"), Want: `{"decision":"deny","reason":"not here"}`}),
		"deny with exit code 1":           pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"not here"}}`, "1"), Want: `{"decision":"deny","reason":"not here"}`}),
		"deny after a line of text":       pre(vendorhooktest.Case{Script: says("checking\n"+`{"hookSpecificOutput":{"permissionDecision":"deny"}}`, "0"), Want: `{"decision":"deny","reason":"the output of the hook is not valid JSON, but it says \"permissionDecision\":\"deny\""}`}),
		"the old form of a denial":        pre(vendorhooktest.Case{Script: says(`{"decision":"block","reason":"old"}`, "0"), Want: `{"decision":"deny","reason":"old"}`}),
		"ask":                             pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"sure?"}}`, "0"), Want: `{"decision":"ask","reason":"sure?"}`}),
		"allow has no effect":             pre(vendorhooktest.Case{Script: says(`{"hookSpecificOutput":{"permissionDecision":"allow"}}`, "0"), Want: `{"audit":[{"code":"allow_ignored","message":"the hook allowed the call, but its directory has no grant approve: the usual questions are asked"}]}`}),
		"two decisions":                   pre(vendorhooktest.Case{Script: says(`{"decision":"approve","hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"r"}}`, "0"), Want: `{"decision":"deny","reason":"r"}`}),
		"an unknown decision fails":       pre(vendorhooktest.Case{Script: says(`{"decision":"maybe"}`, "0"), Why: `the decision "maybe" of the hook is unknown`}),
		"continue false ends the turn":    pre(vendorhooktest.Case{Script: says(`{"continue":false,"stopReason":"enough"}`, "0"), Want: `{"decision":"halt","reason":"enough"}`}),
		"context and a message":           pre(vendorhooktest.Case{Script: says(`{"systemMessage":"for you","suppressOutput":true,"hookSpecificOutput":{"additionalContext":"for the model"}}`, "0"), Want: `{"output":"for you","context":[{"text":"for the model"}]}`}),
		"plain output is dropped":         pre(vendorhooktest.Case{Script: "echo checked", Want: `{}`}),
		"a new input needs a grant":       pre(vendorhooktest.Case{Input: shell, Script: says(`{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"git push --dry-run"}}}`, "0"), Want: `{"decision":"ask","reason":"the hook pre-tool-use-1 wants to change this call, and its directory has no grant rewrite_input: decide about the call as it is"}`}),
		"variables":                       pre(vendorhooktest.Case{Script: `printf '{"systemMessage":"%s %s"}' "$CLAUDE_PROJECT_DIR" "$CLAUDE_TOOL_FILE_PATH"`, Want: `{"output":"PROJECT PROJECT/src/a.go"}`}),
		"it runs in the project":          pre(vendorhooktest.Case{Script: `printf '{"systemMessage":"%s"}' "$(pwd)"`, Want: `{"output":"PROJECT"}`}),
		"a timeout continues":             pre(vendorhooktest.Case{Hook: `"timeout": 0.2`, Script: "exec sleep 60", Why: "the hook did not answer within its timeout"}),
		"a denial before a timeout":       pre(vendorhooktest.Case{Hook: `"timeout": 0.5`, Script: `echo '{"decision":"block","reason":"r"}'; exec sleep 60`, Want: `{"decision":"deny","reason":"r"}`}),
		"a tool of a server":              pre(vendorhooktest.Case{Matcher: "mcp__github__.*", Input: `{"id":"c","tool":"github__search","input":{"q":"x"}}`, Script: "exit 0", Stdin: `{"tool_name":"mcp__github__search","tool_input":{"q":"x"}}`}),
	})
}

// SPEC B-01
func TestHooksBeforeToolsWithGrants(t *testing.T) {
	t.Parallel()
	vendorhooktest.Run(t, readWith(vendorhook.Options{Grants: []string{"rewrite_input"}}), map[string]vendorhooktest.Case{
		"a new input": {
			Event: "PreToolUse", Phase: "tool.pre", Input: shell, Script: says(`{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"git push --dry-run"}}}`, "0"),
			Want: `{"input":{"command":"git push --dry-run"},"audit":[{"code":"allow_ignored","message":"the hook allowed the call, but its directory has no grant approve: the usual questions are asked"}]}`,
		},
		"a denial beats a new input": {
			Event: "PreToolUse", Phase: "tool.pre", Input: shell, Script: says(`{"decision":"block","reason":"r","hookSpecificOutput":{"updatedInput":{"command":"ls"}}}`, "0"), Want: `{"decision":"deny","reason":"r"}`,
		},
		"an input that Belay cannot express": {
			Event: "PreToolUse", Phase: "tool.pre", Input: edit, Script: says(`{"hookSpecificOutput":{"updatedInput":{"old_string":"x"}}}`, "0"),
			Want: `{"decision":"ask","reason":"the hook pre-tool-use-1 wants to change this call in a way that Belay cannot do (the new input: tool Edit: its input has no path): decide about the call as it is"}`,
		},
	})
}

// SPEC B-01
func TestHooksAfterToolsWithGrants(t *testing.T) {
	t.Parallel()
	after := func(output string) vendorhooktest.Case {
		return vendorhooktest.Case{Event: "PostToolUse", Phase: "tool.post", Input: result, Script: says(`{"hookSpecificOutput":{"updatedToolOutput":`+output+`}}`, "0"), Want: `{"result":"redacted"}`}
	}
	vendorhooktest.Run(t, readWith(vendorhook.Options{Grants: []string{"rewrite_output"}}), map[string]vendorhooktest.Case{
		"a text":                  after(`"redacted"`),
		"the output of a command": after(`{"stdout":"redacted","stderr":"","interrupted":false,"isImage":false}`),
		"a list of texts":         after(`[{"type":"text","text":"redacted"}]`),
		"a content":               after(`{"content":[{"type":"text","text":"redacted"}]}`),
	})
}

// SPEC B-02
func TestStrictGatesFailClosed(t *testing.T) {
	t.Parallel()
	vendorhooktest.Run(t, readWith(vendorhook.Options{Strict: true}), map[string]vendorhooktest.Case{
		"exit code 1 denies": {
			Event: "PreToolUse", Phase: "tool.pre", Input: edit, Script: "exit 1", Why: "exit code 1", Want: `{"decision":"deny","reason":"pre-tool-use-1 could not decide: exit code 1: its standard error: empty"}`,
		},
		"exit code 1 with JSON denies": {
			Event: "PreToolUse", Phase: "tool.pre", Input: edit, Script: says(`{"systemMessage":"crashed"}`, "1"), Why: "exit code 1", Want: `{"decision":"deny","reason":"pre-tool-use-1 could not decide: exit code 1: its standard error: empty"}`,
		},
	})
}

// SPEC B-02: the model does not read what a strict hook had to hide, if the hook fails.
func TestAStrictHookThatRewritesResultsFailsClosed(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct {
		key    string
		strict bool
	}{"strict": {"", true}, "onFailure": {`"onFailure": "block"`, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vendorhooktest.Run(t, readWith(vendorhook.Options{Strict: how.strict, Grants: []string{"rewrite_output"}}), map[string]vendorhooktest.Case{
				"a result": {
					Event: "PostToolUse", Phase: "tool.post", Hook: how.key, Input: result, Script: says(`{"hookSpecificOutput":{"updatedToolOutput":"hidden"}}`, "1"), Why: "exit code 1", Want: `{"result":"[result withheld: post-tool-use-1 could not decide: exit code 1: its standard error: empty]"}`,
				},
				"no output": {Event: "PostToolUse", Phase: "tool.post", Hook: how.key, Input: result, Script: "exit 1", Why: "exit code 1", Want: `{"result":"[result withheld: post-tool-use-1 could not decide: exit code 1: its standard error: empty]"}`},
			})
		})
	}
}

const result = `{"id":"c1","tool":"write","input":{"path":"a.txt","content":"x"},"text":"written","is_error":false,"class":"","latency_ns":1}`

// SPEC B-01
func TestHooksAfterTools(t *testing.T) {
	t.Parallel()
	broken := `{"id":"c1","tool":"shell","input":{"command":"x"},"text":"exit code 1","is_error":true,"class":"failed","latency_ns":1}`
	vendorhooktest.Run(t, readWith(vendorhook.Options{}), map[string]vendorhooktest.Case{
		"the input": {
			Event: "PostToolUse", Matcher: "Write", Phase: "tool.post", Input: result, Script: "exit 0",
			Stdin: `{"tool_name":"Write","tool_use_id":"c1","tool_input":{"file_path":"PROJECT/a.txt","content":"x"},"tool_response":{"filePath":"PROJECT/a.txt","success":true,"content":"written"}}`,
		},
		"exit code 2 tells the model": {Event: "PostToolUse", Phase: "tool.post", Input: result, Script: "echo lint >&2; exit 2", Want: `{"context":[{"text":"A hook found a problem after this call: lint"}]}`},
		"block tells the model":       {Event: "PostToolUse", Phase: "tool.post", Input: result, Script: says(`{"decision":"block","reason":"lint"}`, "0"), Want: `{"context":[{"text":"A hook found a problem after this call: lint"}]}`},
		"the result of a subagent": {
			Event: "PostToolUse", Matcher: "Agent", Phase: "tool.post", Input: `{"id":"c1","tool":"invoke_subagent","input":{"name":"r","prompt":"p"},"text":"done","is_error":false,"class":"","latency_ns":12000000}`, Script: "exit 0",
			Stdin: `{"tool_name":"Agent","duration_ms":12,"tool_response":{"status":"completed","content":[{"type":"text","text":"done"}]}}`,
		},
		"context":                    {Event: "PostToolUse", Phase: "tool.post", Input: result, Script: says(`{"hookSpecificOutput":{"additionalContext":"formatted"}}`, "0"), Want: `{"context":[{"text":"formatted"}]}`},
		"stop":                       {Event: "PostToolUse", Phase: "tool.post", Input: result, Script: says(`{"continue":false,"stopReason":"broken."}`, "0"), Want: `{"context":[{"text":"A hook has stopped this turn: broken. Call no more tools. Tell the user why you stop."}]}`},
		"a new result needs a grant": {Event: "PostToolUse", Phase: "tool.post", Input: result, Script: says(`{"hookSpecificOutput":{"updatedToolOutput":"y"}}`, "0"), Want: `{"audit":[{"code":"result_ignored","message":"the hook wants another result, but its directory has no grant rewrite_output"}]}`},
		"not after a failure":        {Event: "PostToolUse", Phase: "tool.post", Input: broken, Silent: true},
		"after a failure":            {Event: "PostToolUseFailure", Matcher: "Bash", Phase: "tool.post", Input: broken, Script: "exit 0", Stdin: `{"tool_name":"Bash","error":"exit code 1"}`},
		"no failure":                 {Event: "PostToolUseFailure", Phase: "tool.post", Input: result, Silent: true},
	})
}

// SPEC B-01
func TestHooksOfTheConversation(t *testing.T) {
	t.Parallel()
	const (
		stop   = `{"text":"done","continuations":0}`
		prompt = `{"text":"hello","original":"","parts":0}`
		start  = `{"source":"new","messages":0}`
		sub    = `{"text":"done","continuations":1,"subagent":"reviewer","run":"r1"}`
	)
	vendorhooktest.Run(t, readWith(vendorhook.Options{}), map[string]vendorhooktest.Case{
		"stop":                         {Event: "Stop", Phase: "turn.stop", Input: stop, Script: "exit 0", Stdin: `{"stop_hook_active":false,"last_assistant_message":"done"}`},
		"stop again":                   {Event: "Stop", Phase: "turn.stop", Input: `{"text":"done","continuations":1}`, Script: "exit 0", Stdin: `{"stop_hook_active":true}`},
		"a matcher of Stop is ignored": {Event: "Stop", Matcher: "Bash", Phase: "turn.stop", Input: stop, Script: "exit 0"},
		"exit code 2 continues":        {Event: "Stop", Phase: "turn.stop", Input: stop, Script: "echo run the tests >&2; exit 2", Want: `{"decision":"continue","reason":"run the tests"}`},
		"block continues":              {Event: "Stop", Phase: "turn.stop", Input: stop, Script: says(`{"decision":"block","reason":"run the tests"}`, "0"), Want: `{"decision":"continue","reason":"run the tests"}`},
		"continue false beats block":   {Event: "Stop", Phase: "turn.stop", Input: stop, Script: says(`{"continue":false,"stopReason":"enough","decision":"block","reason":"more"}`, "0"), Want: `{"output":"enough"}`},
		"advice continues":             {Event: "Stop", Phase: "turn.stop", Input: stop, Script: says(`{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"run the tests"}}`, "0"), Want: `{"decision":"continue","reason":"run the tests"}`},
		"advice elsewhere does not":    {Event: "Stop", Phase: "turn.stop", Input: stop, Script: says(`{"additionalContext":"all is well"}`, "0"), Want: `{"context":[{"text":"all is well"}]}`},
		"approve ends":                 {Event: "Stop", Phase: "turn.stop", Input: stop, Script: says(`{"decision":"approve"}`, "0")},
		"prompt":                       {Event: "UserPromptSubmit", Phase: "user.prompt.submit", Input: prompt, Script: "exit 0", Stdin: `{"prompt":"hello"}`},
		"prompt: plain output":         {Event: "UserPromptSubmit", Phase: "user.prompt.submit", Input: prompt, Script: "echo it is Monday", Want: `{"context":[{"text":"it is Monday"}]}`},
		"prompt: context":              {Event: "UserPromptSubmit", Phase: "user.prompt.submit", Input: prompt, Script: says(`{"hookSpecificOutput":{"additionalContext":"a fact"}}`, "0"), Want: `{"context":[{"text":"a fact"}]}`},
		"prompt: block":                {Event: "UserPromptSubmit", Phase: "user.prompt.submit", Input: prompt, Script: says(`{"decision":"block","reason":"no keys"}`, "0"), Want: `{"decision":"deny","reason":"no keys"}`},
		"prompt: exit code 2":          {Event: "UserPromptSubmit", Phase: "user.prompt.submit", Input: prompt, Script: "echo text; echo no keys >&2; exit 2", Want: `{"decision":"deny","reason":"no keys"}`},
		"start":                        {Event: "SessionStart", Matcher: "startup", Phase: "session.start", Input: start, Script: "echo welcome", Stdin: `{"source":"startup"}`, Want: `{"context":[{"text":"welcome"}]}`},
		"start: fork":                  {Event: "SessionStart", Matcher: "fork", Phase: "session.start", Input: `{"source":"forked","messages":2}`, Script: "exit 0", Stdin: `{"source":"fork"}`},
		"start: resume":                {Event: "SessionStart", Matcher: "startup", Phase: "session.start", Input: `{"source":"resumed","messages":2}`, Silent: true},
		"start: cannot block":          {Event: "SessionStart", Phase: "session.start", Input: start, Script: "echo bad >&2; exit 2", Want: `{"output":"bad"}`},
		"end":                          {Event: "SessionEnd", Phase: "session.end", Input: `{"reason":"done","turns":1}`, Script: "echo ignored", Stdin: `{"reason":"other"}`},
		"compaction":                   {Event: "PreCompact", Matcher: "auto", Phase: "turn.pre_compaction", Input: `{"trigger":"window","messages":1,"tokens":1,"window":1}`, Script: "echo keep the plan", Stdin: `{"trigger":"auto"}`, Want: `{"instructions":[{"text":"keep the plan"}]}`},
		"compaction: by hand":          {Event: "PreCompact", Matcher: "auto", Phase: "turn.pre_compaction", Input: `{"trigger":"forced","messages":1,"tokens":1,"window":1}`, Silent: true},
		"subagent": {
			Event: "SubagentStop", Matcher: "reviewer", Phase: "turn.stop", Input: sub, Script: "exit 0",
			Stdin: `{"agent_type":"reviewer","agent_id":"r1","stop_hook_active":true,"last_assistant_message":"done"}`,
		},
		"subagent: exit code 2 continues": {Event: "SubagentStop", Phase: "turn.stop", Input: sub, Script: "echo test it >&2; exit 2", Want: `{"decision":"continue","reason":"test it"}`},
		"subagent: block continues":       {Event: "SubagentStop", Phase: "turn.stop", Input: sub, Script: says(`{"decision":"block","reason":"test it"}`, "0"), Want: `{"decision":"continue","reason":"test it"}`},
		"subagent: another one":           {Event: "SubagentStop", Matcher: "tester", Phase: "turn.stop", Input: sub, Silent: true},
		"subagent: not the main agent":    {Event: "SubagentStop", Phase: "turn.stop", Input: stop, Silent: true},
		"permission: deny":                {Event: "PermissionRequest", Matcher: "Bash", Phase: "approval.request", Input: `{"id":"a","call":"c1","tool":"shell","input":{"command":"x"},"hash":"h","reason":"","by":"floor","floor":true}`, Script: says(`{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"never"}}}`, "0"), Stdin: `{"tool_name":"Bash"}`, Want: `{"decision":"deny","reason":"never"}`},
	})
}
