//go:build unix

package gemini_test

import (
	"testing"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/dialect/gemini"
	"github.com/belay-run/belay/internal/vendorhook"
	"github.com/belay-run/belay/internal/vendorhook/vendorhooktest"
)

func readWith(grants ...string) vendorhooktest.Read {
	return func(t *testing.T, project string, file []byte) []*declare.Declaration {
		t.Helper()
		r, err := gemini.ReadHooks(&vendorhook.Options{Project: project, Grants: grants}, vendorhook.File{Path: project + "/.gemini/settings.json", Text: file})
		if err != nil {
			t.Fatal(err)
		}
		return r.Hooks
	}
}

const (
	replace = `{"id":"c1","tool":"edit","input":{"path":"a.txt","old_string":"a","new_string":"b"}}`
	result  = `{"id":"c1","tool":"shell","input":{"command":"ls"},"text":"a.txt","is_error":false,"class":"","latency_ns":1}`
)

// SPEC B-01
func TestHooks(t *testing.T) {
	t.Parallel()
	vendorhooktest.Run(t, readWith(), map[string]vendorhooktest.Case{
		"the input": {
			Event: "BeforeTool", Matcher: "write_file|replace", Phase: "tool.pre", Input: replace, Script: "exit 0",
			Stdin: `{"session_id":"s1","cwd":"PROJECT","hook_event_name":"BeforeTool","tool_name":"replace","tool_input":{"file_path":"PROJECT/a.txt","old_string":"a","new_string":"b"}}`,
		},
		"a matcher is a pattern":  {Event: "BeforeTool", Matcher: "repl", Phase: "tool.pre", Input: replace, Script: "exit 0"},
		"another tool":            {Event: "BeforeTool", Matcher: "run_shell_command", Phase: "tool.pre", Input: replace, Silent: true},
		"a timeout in ms":         {Event: "BeforeTool", Hook: `"timeout": 300`, Phase: "tool.pre", Input: replace, Script: "exec sleep 60", Why: "within its timeout"},
		"deny":                    {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: `echo '{"decision":"deny","reason":"no"}'`, Want: `{"decision":"deny","reason":"no"}`},
		"block":                   {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: `echo '{"decision":"block","reason":"no"}'`, Want: `{"decision":"deny","reason":"no"}`},
		"exit code 2":             {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: "echo no >&2; exit 2", Want: `{"decision":"deny","reason":"no"}`},
		"continue false":          {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: `echo '{"continue":false,"stopReason":"enough"}'`, Want: `{"decision":"halt","reason":"enough"}`},
		"after a tool":            {Event: "AfterTool", Phase: "tool.post", Input: result, Script: `echo '{"hookSpecificOutput":{"additionalContext":"more"}}'`, Stdin: `{"tool_name":"run_shell_command","tool_response":{"llmContent":"a.txt","returnDisplay":"a.txt"}}`, Want: `{"context":[{"text":"more"}]}`},
		"hiding needs a grant":    {Event: "AfterTool", Phase: "tool.post", Input: result, Script: `echo '{"decision":"deny","reason":"hidden"}'`, Want: `{"context":[{"text":"A hook found a problem after this call: hidden"}]}`},
		"before the agent":        {Event: "BeforeAgent", Phase: "user.prompt.submit", Input: `{"text":"p","original":"","parts":0}`, Script: `echo '{"decision":"deny","reason":"no"}'`, Stdin: `{"prompt":"p"}`, Want: `{"decision":"deny","reason":"no"}`},
		"plain output is no fact": {Event: "BeforeAgent", Phase: "user.prompt.submit", Input: `{"text":"p","original":"","parts":0}`, Script: `echo debug`, Want: `{}`},
		"after the agent":         {Event: "AfterAgent", Phase: "turn.stop", Input: `{"text":"done","continuations":1}`, Script: `echo '{"decision":"deny","reason":"again"}'`, Stdin: `{"prompt_response":"done","stop_hook_active":true}`, Want: `{"decision":"continue","reason":"again"}`},
		"the start of a session":  {Event: "SessionStart", Matcher: "startup", Phase: "session.start", Input: `{"source":"new","messages":0}`, Script: `echo '{"hookSpecificOutput":{"additionalContext":"hello"}}'`, Want: `{"context":[{"text":"hello"}]}`},
		"a compaction":            {Event: "PreCompress", Phase: "turn.pre_compaction", Input: `{"trigger":"window","messages":1,"tokens":1,"window":1}`, Script: "exit 0", Stdin: `{"trigger":"auto"}`},
		"an input needs a grant":  {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: `echo '{"hookSpecificOutput":{"tool_input":{"new_string":"c"}}}'`, Want: `{"decision":"ask","reason":"the hook before-tool-1 wants to change this call, and its directory has no grant rewrite_input: decide about the call as it is"}`},
		"variables":               {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: `printf '{"systemMessage":"%s"}' "$GEMINI_PROJECT_DIR"`, Want: `{"output":"PROJECT"}`},
	})
	vendorhooktest.Run(t, readWith("rewrite_input", "rewrite_output"), map[string]vendorhooktest.Case{
		"a part of the input":   {Event: "BeforeTool", Phase: "tool.pre", Input: replace, Script: `echo '{"hookSpecificOutput":{"tool_input":{"new_string":"c"}}}'`, Want: `{"input":{"path":"a.txt","old_string":"a","new_string":"c"}}`},
		"the result is hidden":  {Event: "AfterTool", Phase: "tool.post", Input: result, Script: `echo '{"decision":"deny","reason":"hidden"}'`, Want: `{"result":"hidden"}`},
		"the result is changed": {Event: "AfterTool", Phase: "tool.post", Input: result, Script: `echo '{"hookSpecificOutput":{"tool_output":"other"}}'`, Want: `{"result":"other"}`},
	})
}
