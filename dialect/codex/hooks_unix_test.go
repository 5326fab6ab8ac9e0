//go:build unix

package codex_test

import (
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect/codex"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/vendorhook/vendorhooktest"
)

func read(t *testing.T, project string, file []byte) []*declare.Declaration {
	t.Helper()
	r, err := codex.ReadHooks(&vendorhook.Options{Project: project}, vendorhook.File{Path: project + "/.codex/hooks.json", Text: file, Whole: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Hooks
}

// SPEC B-01
func TestHooks(t *testing.T) {
	t.Parallel()
	const (
		write  = `{"id":"c1","tool":"write","input":{"path":"a.txt","content":"x\n"}}`
		result = `{"id":"c1","tool":"shell","input":{"command":"ls"},"text":"a.txt","is_error":true,"class":"failed","latency_ns":1}`
	)
	vendorhooktest.Run(t, read, map[string]vendorhooktest.Case{
		"a file is changed by a patch": {
			Event: "PreToolUse", Matcher: "apply_patch", Phase: "tool.pre", Input: write, Script: "exit 0",
			Stdin: `{"session_id":"s1","turn_id":"t1","cwd":"PROJECT","permission_mode":"default","tool_name":"apply_patch","tool_use_id":"c1","tool_input":{"command":"*** Begin Patch\n*** Add File: PROJECT/a.txt\n+x\n*** End Patch"}}`,
		},
		"Write matches a patch":      {Event: "PreToolUse", Matcher: "Write", Phase: "tool.pre", Input: write, Script: "exit 0", Stdin: `{"tool_name":"apply_patch"}`},
		"Bash does not":              {Event: "PreToolUse", Matcher: "Bash", Phase: "tool.pre", Input: write, Silent: true},
		"exit code 2 denies":         {Event: "PreToolUse", Phase: "tool.pre", Input: write, Script: "echo no >&2; exit 2", Want: `{"decision":"deny","reason":"no"}`},
		"deny":                       {Event: "PreToolUse", Phase: "tool.pre", Input: write, Script: `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}'`, Want: `{"decision":"deny","reason":"no"}`},
		"also after a failure":       {Event: "PostToolUse", Matcher: "Bash", Phase: "tool.post", Input: result, Script: `echo '{"decision":"block","reason":"fix it"}'`, Stdin: `{"tool_name":"Bash","tool_input":{"command":"ls"},"tool_response":"a.txt"}`, Want: `{"context":[{"text":"A hook found a problem after this call: fix it"}]}`},
		"stop":                       {Event: "Stop", Phase: "turn.stop", Input: `{"text":"done","continuations":0}`, Script: `echo '{"decision":"block","reason":"more"}'`, Stdin: `{"stop_hook_active":false,"last_assistant_message":"done"}`, Want: `{"decision":"continue","reason":"more"}`},
		"the start of a session":     {Event: "SessionStart", Matcher: "startup|resume", Phase: "session.start", Input: `{"source":"new","messages":0}`, Script: "echo hello", Want: `{"context":[{"text":"hello"}]}`},
		"a prompt":                   {Event: "UserPromptSubmit", Phase: "user.prompt.submit", Input: `{"text":"p","original":"","parts":0}`, Script: "echo no >&2; exit 2", Stdin: `{"prompt":"p"}`, Want: `{"decision":"deny","reason":"no"}`},
		"another exit code":          {Event: "PreToolUse", Phase: "tool.pre", Input: write, Script: "exit 3", Why: "exit code 3"},
		"the text of a denial stays": {Event: "PreToolUse", Phase: "tool.pre", Input: write, Script: `echo '{"decision":"block","reason":"old form"}'`, Want: `{"decision":"deny","reason":"old form"}`},
	})
}
