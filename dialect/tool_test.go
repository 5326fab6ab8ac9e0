package dialect_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect"
)

// text returns calls as one text: the tool and the input of each.
func text(calls []dialect.Call) string {
	var lines []string
	for _, c := range calls {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Tool, c.Input, c.Dir)))
	}
	return strings.Join(lines, "\n")
}

// SPEC B-03
func TestOursTranslatesTheSpellingsOfAllVendors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, input, want string }{
		"Claude Code writes a file":         {"Write", `{"file_path":"/p/a.go","content":"x"}`, `write {"content":"x","path":"/p/a.go"}`},
		"Claude Code edits a file":          {"Edit", `{"file_path":"/p/a.go","old_string":"a","new_string":"b","replace_all":true}`, `edit {"new_string":"b","old_string":"a","path":"/p/a.go","replace_all":true}`},
		"each edit of MultiEdit is a call":  {"MultiEdit", `{"file_path":"/p/a","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":"d"}]}`, "edit {\"new_string\":\"b\",\"old_string\":\"a\",\"path\":\"/p/a\"}\nedit {\"new_string\":\"d\",\"old_string\":\"c\",\"path\":\"/p/a\"}"},
		"a notebook is a file":              {"NotebookEdit", `{"notebook_path":"/p/n.ipynb","new_source":"x"}`, `edit {"new_string":"x","old_string":"","path":"/p/n.ipynb"}`},
		"Claude Code runs a command":        {"Bash", `{"command":"rm x","timeout":5000,"description":"d"}`, `shell {"command":"rm x","description":"d"}`},
		"Claude Code starts a subagent":     {"Task", `{"subagent_type":"reviewer","prompt":"look"}`, `invoke_subagent {"name":"reviewer","prompt":"look"}`},
		"Claude Code searches":              {"Grep", `{"pattern":"x","-i":true,"output_mode":"files_with_matches"}`, `grep {"ignore_case":true,"mode":"files","pattern":"x"}`},
		"Gemini CLI writes a file":          {"write_file", `{"file_path":"/p/a","content":"x"}`, `write {"content":"x","path":"/p/a"}`},
		"Gemini CLI replaces text":          {"replace", `{"file_path":"/p/a","old_string":"a","new_string":"b"}`, `edit {"new_string":"b","old_string":"a","path":"/p/a"}`},
		"Gemini CLI reads with an old name": {"read_file", `{"absolute_path":"/p/a"}`, `read {"path":"/p/a"}`},
		"Gemini CLI reads several files":    {"read_many_files", `{"include":["a","b"]}`, "read {\"path\":\"a\"}\nread {\"path\":\"b\"}"},
		"the directory of a command":        {"run_shell_command", `{"command":"ls","dir_path":"sub"}`, `shell {"command":"ls"} sub`},
		"Codex passes arguments":            {"shell", `{"command":["bash","-lc","rm -rf x"],"workdir":"/p"}`, `shell {"command":"rm -rf x"} /p`},
		"arguments are quoted":              {"shell", `{"command":["echo","a b","it's"]}`, `shell {"command":"echo 'a b' 'it'\\''s'"}`},
		"Cursor deletes a file":             {"Delete", `{"file_path":"/p/a"}`, `edit {"new_string":"","old_string":"","path":"/p/a"}`},
		"Copilot passes the input as text":  {"bash", `"{\"command\":\"ls\"}"`, `shell {"command":"ls"}`},
		"Copilot creates a file":            {"create", `{"path":"/p/a","file_text":"x"}`, `write {"content":"x","path":"/p/a"}`},
		"Copilot edits a file":              {"edit", `{"path":"/p/a","old_str":"a","new_str":"b"}`, `edit {"new_string":"b","old_string":"a","path":"/p/a"}`},
		"a tool of an MCP server":           {"mcp__github__create_issue", `{"title":"x"}`, `github__create_issue {"title":"x"}`},
		"an unknown tool is unchanged":      {"LSP", `{"url":"x"}`, `LSP {"url":"x"}`},
		"Claude Code reads a page":          {"WebFetch", `{"url":"https://a.example/x","prompt":"see https://b.example"}`, `web_fetch {"url":"https://a.example/x"}`},
		"Gemini CLI reads pages":            {"web_fetch", `{"prompt":"compare https://a.example and https://b.example."}`, "web_fetch {\"url\":\"https://a.example\"}\nweb_fetch {\"url\":\"https://b.example\"}"},
		"VS Code reads pages":               {"fetch_webpage", `{"urls":["https://a.example","https://b.example"]}`, "web_fetch {\"url\":\"https://a.example\"}\nweb_fetch {\"url\":\"https://b.example\"}"},
		"Claude Code searches the web":      {"WebSearch", `{"query":"x","allowed_domains":["a"]}`, `web_search {"query":"x"}`},
		"Claude Code plans its work":        {"TodoWrite", `{"todos":[{"content":"x","status":"pending","activeForm":"doing x"}]}`, `todo_write {"todos":[{"content":"x","status":"pending"}]}`},
		"Codex plans its work":              {"update_plan", `{"plan":[{"step":"x","status":"in_progress"}]}`, `todo_write {"todos":[{"content":"x","status":"in_progress"}]}`},
		"Claude Code shows its plan":        {"ExitPlanMode", `{"plan":"# x"}`, `present_plan {"plan":"# x"}`},
		"Claude Code reads the output":      {"BashOutput", `{"bash_id":"b1"}`, `shell_output {"id":"b1"}`},
		"Claude Code stops a command":       {"KillShell", `{"shell_id":"b1"}`, `shell_stop {"id":"b1"}`},
		"a newer Claude Code stops it":      {"TaskStop", `{"task_id":"b1"}`, `shell_stop {"id":"b1"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, err := dialect.Ours(dialect.Call{Tool: c.tool, Input: json.RawMessage(c.input)})
			if got := text(calls); err != nil || got != c.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

const patch = `*** Begin Patch
*** Add File: new.txt
+one
+two
*** Update File: src/a.go
*** Move to: src/b.go
@@ func a()
 keep
-old
+new
@@
-x
+y
  *** Delete File: gone.txt
*** End Patch`

// SPEC B-03
func TestAPatchIsACallForEachFile(t *testing.T) {
	t.Parallel()
	want := `write {"content":"one\ntwo\n","path":"new.txt"}
edit {"new_string":"","old_string":"","path":"src/b.go"}
edit {"new_string":"keep\nnew","old_string":"keep\nold","path":"src/a.go"}
edit {"new_string":"","old_string":"","path":"gone.txt"}
edit {"new_string":"y\n *** Delete File: gone.txt","old_string":"x\n *** Delete File: gone.txt","path":"src/a.go"}`
	forms := map[string]dialect.Call{}
	for name, in := range map[string]map[string]any{
		"as a command": {"command": patch}, "as an input": {"input": patch},
	} {
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		forms[name] = dialect.Call{Tool: "apply_patch", Input: data}
	}
	data, err := json.Marshal(map[string]any{"command": []string{"bash", "-lc", "apply_patch <<'EOF'\n" + patch + "\nEOF\n"}})
	if err != nil {
		t.Fatal(err)
	}
	forms["in a shell"] = dialect.Call{Tool: "shell", Input: data}
	for name, call := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, err := dialect.Ours(call)
			if name == "in a shell" && err == nil { // the command is a call too: it may do more
				if calls[0].Tool != "shell" {
					t.Errorf("the first call is %s", text(calls[:1]))
				}
				calls = calls[1:]
			}
			if got := text(calls); err != nil || got != want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func TestOursRejectsInputsThatAGuardCannotSee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, input, want string }{
		"two paths":          {"edit", `{"file_path":"ok","path":"secret","old_str":"","new_str":""}`, "contradict"},
		"two commands":       {"Bash", `{"command":"ls","cmd":"rm x"}`, "contradict"},
		"no path":            {"Write", `{"content":"x"}`, "no path"},
		"no command":         {"Bash", `{}`, "no command"},
		"a list":             {"Write", `[1]`, "not a JSON object"},
		"a patch of nothing": {"apply_patch", `{"command":"*** Begin Patch\n*** End Patch"}`, "names no file"},
		"no patch":           {"apply_patch", `{"command":"hello"}`, "does not begin with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls, err := dialect.Ours(dialect.Call{Tool: c.tool, Input: json.RawMessage(c.input)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", calls, err, c.want)
			}
		})
	}
}

// SPEC B-03
func TestTheirsIsTheVendorsForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vendor                   dialect.Vendor
		tool, input, as          string
		wantTool, wantInput, why string
	}{
		"a path becomes absolute":     {dialect.ClaudeCode, "edit", `{"path":"a.go","old_string":"a","new_string":"b"}`, "", "Edit", `{"file_path":"/p/a.go","new_string":"b","old_string":"a"}`, ""},
		"MultiEdit has a list":        {dialect.ClaudeCode, "edit", `{"path":"/q/a","old_string":"a","new_string":"b"}`, "MultiEdit", "MultiEdit", `{"edits":[{"new_string":"b","old_string":"a"}],"file_path":"/q/a"}`, ""},
		"a time limit in ms":          {dialect.ClaudeCode, "shell", `{"command":"ls","timeout_seconds":5}`, "", "Bash", `{"command":"ls","timeout":5000}`, ""},
		"Codex has only patches":      {dialect.Codex, "write", `{"path":"a","content":"x\ny\n"}`, "Write", "apply_patch", `{"command":"*** Begin Patch\n*** Add File: /p/a\n+x\n+y\n*** End Patch"}`, ""},
		"Codex edits with a patch":    {dialect.Codex, "edit", `{"path":"a","old_string":"x","new_string":"y"}`, "", "apply_patch", `{"command":"*** Begin Patch\n*** Update File: /p/a\n@@\n-x\n+y\n*** End Patch"}`, ""},
		"Gemini CLI lists":            {dialect.GeminiCLI, "list", `{"path":"src"}`, "", "list_directory", `{"dir_path":"/p/src"}`, ""},
		"a server's tool":             {dialect.ClaudeCode, "github__search", `{"q":"x"}`, "", "mcp__github__search", `{"q":"x"}`, ""},
		"a tool that only Belay has":  {dialect.ClaudeCode, "remember", `{"q":"x"}`, "", "remember", `{"q":"x"}`, ""},
		"Copilot's names of an edit":  {dialect.Copilot, "edit", `{"path":"/p/a","old_string":"a","new_string":"b"}`, "", "edit", `{"new_str":"b","old_str":"a","path":"/p/a"}`, ""},
		"Claude Code's to-do list":    {dialect.ClaudeCode, "todo_write", `{"todos":[{"content":"x","status":"pending"}]}`, "", "TodoWrite", `{"todos":[{"activeForm":"x","content":"x","status":"pending"}]}`, ""},
		"Gemini CLI's to-do list":     {dialect.GeminiCLI, "todo_write", `{"todos":[{"content":"x","status":"pending"}]}`, "", "write_todos", `{"todos":[{"description":"x","status":"pending"}]}`, ""},
		"a change of a notebook":      {dialect.ClaudeCode, "edit", `{"path":"n.ipynb","old_string":"a","new_string":"b"}`, "NotebookEdit", "NotebookEdit", `{"edit_mode":"replace","new_source":"b","notebook_path":"/p/n.ipynb"}`, ""},
		"a newer name":                {dialect.ClaudeCode, "shell_stop", `{"id":"b1"}`, "TaskStop", "TaskStop", `{"shell_id":"b1","task_id":"b1"}`, ""},
		"Claude Code counts matches":  {dialect.ClaudeCode, "grep", `{"pattern":"x","mode":"count"}`, "", "Grep", `{"output_mode":"count","pattern":"x"}`, ""},
		"Claude Code lists the files": {dialect.ClaudeCode, "grep", `{"pattern":"x","mode":"files"}`, "", "Grep", `{"output_mode":"files_with_matches","pattern":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := c.vendor.Theirs(dialect.Call{Tool: c.tool, Input: json.RawMessage(c.input)}, "/p", c.as)
			if err != nil || got.Tool != c.wantTool || string(got.Input) != c.wantInput {
				t.Errorf("got %v %s %s\nwant %s %s", err, got.Tool, got.Input, c.wantTool, c.wantInput)
			}
		})
	}
}

// SPEC B-03
func TestEveryNameOfAVendorLeadsBackToTheTool(t *testing.T) {
	t.Parallel()
	inputs := map[string]string{
		"shell": `{"command":"ls"}`, "read": `{"path":"/p/a"}`, "write": `{"path":"/p/a","content":"x\n"}`,
		"edit": `{"new_string":"b","old_string":"a","path":"/p/a"}`, "glob": `{"pattern":"*"}`, "grep": `{"pattern":"x"}`, "list": `{"path":"/p"}`,
		"web_fetch": `{"url":"https://a.example/x"}`, "web_search": `{"query":"x"}`, "todo_write": `{"todos":[{"content":"x","status":"pending"}]}`,
		"present_plan": `{"plan":"x"}`, "shell_output": `{"id":"b1"}`, "shell_stop": `{"id":"b1"}`,
		"invoke_subagent": `{"name":"r","prompt":"p"}`, "invoke_skill": `{"name":"s"}`, "github__search": `{"q":"x"}`,
	}
	for _, vendor := range dialect.Vendors() {
		for tool, input := range inputs {
			names := vendor.Names(tool)
			if names[0] == tool && len(names) == 1 && vendor != dialect.Copilot && !strings.Contains(tool, "glob") && !strings.Contains(tool, "grep") {
				continue // the vendor has no such tool
			}
			if strings.Contains(tool, "__") && vendor != dialect.ClaudeCode && vendor != dialect.Codex {
				continue // Cursor and Copilot do not say where the server's name ends
			}
			theirs, err := vendor.Theirs(dialect.Call{Tool: tool, Input: json.RawMessage(input)}, "/p", "")
			if err != nil {
				t.Fatal(err)
			}
			back, err := dialect.Ours(theirs)
			if vendor == dialect.Cursor && tool == "edit" {
				continue // Cursor has one tool for both: it is a write
			}
			if err != nil || len(back) != 1 || back[0].Tool != tool || !sameJSON(t, back[0].Input, input) {
				t.Errorf("%s: %s %s became %s %s and then %v %s", vendor, tool, input, theirs.Tool, theirs.Input, err, text(back))
			}
		}
	}
}

func sameJSON(t *testing.T, a json.RawMessage, b string) bool {
	t.Helper()
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		t.Fatalf("not JSON: %s %s", a, b)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// SPEC B-03
func TestUpdatedKeepsWhatTheHookDidNotChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ tool, input, updated, want string }{
		"the path stays relative": {"edit", `{"path":"a.go","old_string":"a","new_string":"b"}`, `{"file_path":"/p/a.go","old_string":"a","new_string":"c"}`, `{"new_string":"c","old_string":"a","path":"a.go"}`},
		"another path":            {"write", `{"path":"a.go","content":"x"}`, `{"file_path":"/p/b.go","content":"x"}`, `{"content":"x","path":"/p/b.go"}`},
		"inputs of Belay stay":    {"shell", `{"command":"ls","timeout_seconds":5}`, `{"command":"ls -l","timeout":5000}`, `{"command":"ls -l","timeout_seconds":5}`},
		"an input is removed":     {"glob", `{"pattern":"*","path":"/p/x"}`, `{"pattern":"*"}`, `{"pattern":"*"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := dialect.ClaudeCode.Updated(dialect.Call{Tool: c.tool, Input: json.RawMessage(c.input)}, "/p", "", json.RawMessage(c.updated))
			if err != nil || string(got) != c.want {
				t.Errorf("got %v %s, want %s", err, got, c.want)
			}
		})
	}
	for name, updated := range map[string]string{"no object": `7`, "no path": `{"content":"x"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := dialect.ClaudeCode.Updated(dialect.Call{Tool: "write", Input: json.RawMessage(`{"path":"a","content":"b"}`)}, "/p", "", json.RawMessage(updated)); err == nil {
				t.Errorf("got %s, want an error", got)
			}
		})
	}
}

// An input with a decoy is refused, or every reading of it is a call: an agent may use the one
// or the other.
//
// SPEC B-03
func TestDecoys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool, in string
		sees     string // "" means that the call is refused
	}{
		"an address beside the others": {"web_fetch", `{"url":"https://ok.example","prompt":"see HTTPS://evil.example/"}`, `{"url":"HTTPS://evil.example/"}`},
		"two addresses":                {"WebFetch", `{"url":"https://ok.example","uri":"https://evil.example"}`, ""},
		"a list beside the file":       {"replace", `{"file_path":"secret","old_string":"a","new_string":"b","edits":[{"path":"ok.txt"}]}`, ""},
		"a list beside the change":     {"replace", `{"file_path":"secret","old_string":"a","new_string":"b","edits":[{"old_string":"x","new_string":"y"}]}`, `"old_string":"a","path":"secret"`},
		"two lists":                    {"MultiEdit", `{"file_path":"f","edits":[{"old_string":"x","new_string":"y"}],"replacements":[{"filePath":"secret"}]}`, ""},
		"files beside a file":          {"read_file", `{"file_path":"secret","include":["README.md"]}`, ""},
		"a pattern":                    {"read_many_files", `{"include":["secret*/**"]}`, `grep {"glob":"secret*/**"`},
		"two directories of a command": {"run_shell_command", `{"command":"x","workdir":".","dir_path":".git/hooks"}`, ""},
		"two directories to search":    {"grep_search", `{"pattern":"KEY","path":".","dir_path":"secret"}`, ""},
		"two commands":                 {"shell", `{"cmd":"ls","command":["sh","-c","rm -rf x"]}`, ""},
		"a command that is no text":    {"Bash", `{"command":{"a":"b"}}`, ""},
		"a file after the end":         {"apply_patch", `{"input":"*** Begin Patch\n*** Update File: notes.txt\n@@\n *** End Patch\n+x\n*** Add File: secret\n+evil\n*** End Patch"}`, `write {"content":"evil\n","path":"secret"}`},
		"a file after a real end":      {"apply_patch", `{"input":"*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n*** Add File: secret\n+evil\n"}`, `"path":"secret"`},
		"a patch somewhere else":       {"shell", `{"command":"cd prod && apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\nEOF"}`, ""},
		"too many files":               {"read_many_files", `{"paths":["a"` + strings.Repeat(`,"a"`, 300) + `]}`, ""},
	} {
		calls, err := dialect.Ours(dialect.Call{Tool: c.tool, Input: json.RawMessage(c.in)})
		if (c.sees == "") != (err != nil) || !strings.Contains(text(calls), c.sees) {
			t.Errorf("%s: %v\n%s", name, err, text(calls))
		}
	}
}
