package subagent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/subagent"
)

const inMarkdown = `---
name: reviewer
description: Reviews a change.
model: scripted/small
tools: [read, "grep"]
skills: []
mode: careful
budget:
  turn_tokens: 1000
  session_cost: 0.5
hooks:
  onToolCall:
    - id: no-write
      action: {deny: "no"}
  turn.stop:
    id: tests
    command: ["./check"]
---
You review changes.

Be brief.
`

const inYAML = `name: reviewer
description: Reviews a change.
model: scripted/small
prompt: |
  You review changes.

  Be brief.
tools: read, grep
skills: []
mode: careful
budget: {turn_tokens: 1000, session_cost: 0.5}
hooks:
  - {phase: tool.pre, id: no-write, action: {deny: "no"}}
  - {phase: turn.stop, id: tests, command: ["./check"]}
`

const inJSON = `{
	"name": "reviewer", "description": "Reviews a change.", "model": "scripted/small",
	"prompt": "You review changes.\n\nBe brief.",
	"tools": ["read", "grep"], "skills": [], "mode": "careful",
	"budget": {"turn_tokens": 1000, "session_cost": 5e-1},
	"hooks": [
		{"phase": "tool.pre", "id": "no-write", "action": {"deny": "no"}},
		{"phase": "turn.stop", "id": "tests", "command": ["./check"]}
	]
}
`

// shown returns a value as one line, without line numbers.
func shown(v frontmatter.Value) string {
	switch v.Kind {
	case frontmatter.List:
		var all []string
		for _, item := range v.List {
			all = append(all, shown(item))
		}
		return "[" + strings.Join(all, " ") + "]"
	case frontmatter.Map:
		var all []string
		for _, f := range v.Map {
			all = append(all, f.Key+"="+shown(f.Value))
		}
		return "{" + strings.Join(all, " ") + "}"
	default:
		return v.Text
	}
}

// SPEC S-08, W-03
func TestDeclarationsInEveryFormat(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"a.md": inMarkdown, "a.yaml": inYAML, "a.yml": inYAML, "a.json": inJSON, "A.JSON": inJSON} {
		declared, problems := subagent.Load(fstest.MapFS{file: {Data: []byte(text)}})
		if len(problems) > 0 || len(declared) != 1 {
			t.Fatalf("%s: %d agents, and the problems %v", file, len(declared), problems)
		}
		d := *declared[0]
		want := `[{phase=tool.pre id=no-write action={deny=no}} {phase=turn.stop id=tests command=[./check]}]`
		if file == "a.md" {
			want = `{onToolCall=[{id=no-write action={deny=no}}] turn.stop={id=tests command=[./check]}}`
		}
		if got := shown(d.Hooks); got != want {
			t.Errorf("%s: hooks = %s, want %s", file, got, want)
		}
		d.Hooks = frontmatter.Value{}
		declaration := subagent.Declaration{
			Name: "reviewer", Description: "Reviews a change.", Model: "scripted/small", Prompt: "You review changes.\n\nBe brief.",
			Tools: []string{"read", "grep"}, Skills: []string{}, Mode: "careful", Budget: belay.Budget{TurnTokens: 1000, SessionCost: 0.5}, Path: file,
		}
		if diff := cmp.Diff(declaration, d); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

// SPEC W-03
func TestBucketsAreTaken(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{"onStart", "onToolCall", "onToolEnd", "onModelCall", "onModelEnd", "onComplete", "onError", "tool.pre"} {
		d, problems := subagent.Parse("a.yaml", []byte("hooks:\n  "+bucket+":\n    - action: log\n"))
		if want := "{" + bucket + "=[{action=log}]}"; len(problems) > 0 || shown(d.Hooks) != want {
			t.Errorf("%s: %s, and the problems %v", bucket, shown(d.Hooks), problems)
		}
	}
}

// SPEC S-08: one bad file is reported, with all its mistakes, and does not hide
// other files.
func TestMistakesInDeclarations(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule, file, text string
		want             []string
	}{
		{"an unknown key", "a.yaml", "name: a\n\ntol: [x]\n", []string{`a.yaml:3: unknown key "tol" (did you mean "tools"?): valid keys are name, description`}},
		{"an unknown key in frontmatter", "a.md", "---\nname: a\nprompts: x\n---\n", []string{`a.md:3: unknown key "prompts" (did you mean "prompt"?)`}},
		{"an unknown key in JSON", "a.json", "{\n  \"name\": \"a\",\n  \"modell\": \"x\"\n}", []string{`a.json:3: unknown key "modell" (did you mean "model"?)`}},
		{"all mistakes", "a.yaml", "name: -a\nmodel: 5\nmode: [x]\ntools:\nskills: [1, \"\"]\n", []string{
			"a.yaml:2: model is a number: write a text", "a.yaml:3: mode is a list: write a text", "a.yaml:4: tools is nothing: write a list of names",
			"a.yaml:5: skills contains a number", "a.yaml:5: skills: a name is empty", `a.yaml:1: the name "-a": a name is 1 to 64`,
		}},
		{"a name that the file does not have", "a b.yaml", "description: x\n", []string{`a b.yaml: the name "a b": a name is`}},
		{"a budget that is no mapping", "a.yaml", "budget: 5\n", []string{"a.yaml:1: budget is a number: write a mapping of turn_tokens"}},
		{"bounds that are none", "a.yaml", "budget:\n  turn_tokens: 1.5\n  turn_cost: -1\n  session_tokens: many\n  session_cost: .nan\n  turns: 3\n", []string{
			"a.yaml:2: budget: turn_tokens: write a whole number", "a.yaml:3: budget: turn_cost: write a number above 0", "a.yaml:4: budget: session_tokens: write a number",
			"a.yaml:5: budget: session_cost: write a number", `a.yaml:6: budget: unknown key "turns"`,
		}},
		{"hooks that are none", "a.yaml", "hooks: x\n", []string{"a.yaml:1: hooks is a text"}},
		{"a hook that is none", "a.yaml", "hooks:\n  - x\n", []string{"a.yaml:2: an entry of hooks is a text: write a mapping"}},
		{"an unknown bucket", "a.yaml", "hooks:\n  onToolCal: [{id: x}]\n", []string{`a.yaml:2: hooks: unknown phase "onToolCal" (did you mean "onToolCall"?)`}},
		{"hooks in the form of another program", "a.md", "---\nname: a\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: [{type: command, command: ./check.sh}]\n---\n", []string{
			`a.md:4: hooks: unknown phase "PreToolUse": this is the format of another program: write a list of hooks, each with its phase`,
		}},
		{"a phase in a bucket", "a.yaml", "hooks:\n  onError:\n    - {id: x, phase: error}\n", []string{"a.yaml:3: hooks: the hook has the key phase, but it is already in the list of onError"}},
		{"two prompts", "a.md", "---\nprompt: x\n---\nAnd this.\n", []string{"a.md:2: there is a prompt here and another one after"}},
		{"Markdown without frontmatter", "a.md", "You review.\n", []string{"a.md:1: there is no frontmatter"}},
		{"frontmatter that is never closed", "a.md", "---\nname: a\n", []string{"a.md:1: the frontmatter that begins here is never closed"}},
		{"a key given twice", "a.yaml", "name: a\nname: b\n", []string{`a.yaml:2: the key "name" occurs twice`}},
		{"a key given twice in JSON", "a.json", "{\"name\": \"a\",\n\"name\": \"b\"}", []string{`a.json:2: the key "name" occurs twice`}},
		{"a tab", "a.yaml", "tools:\n\t- x\n", []string{"a.yaml:2: "}},
		{"half of JSON", "a.json", "{\"name\":\n \"a\"", []string{"a.json:2: it is not JSON"}},
		{"no JSON", "a.json", "name: a\n", []string{"a.json:1: it is not JSON"}},
		{"nothing", "a.json", "", []string{"a.json:1: it is not JSON: it ends too early"}},
		{"a list in JSON", "a.json", "[]", []string{"a.json:1: the file is a list: write a JSON object"}},
		{"something behind JSON", "a.json", "{}\n{}", []string{"a.json:2: there is text after the JSON value"}},
		{"JSON that is nested too deep", "a.json", `{"hooks": ` + strings.Repeat("[", 1000), []string{"a.json:1: values are nested more than 16 levels deep"}},
		{"bytes that are no text", "a.json", "{\"name\": \"\xff\"}", []string{"a.json:1: the file is not UTF-8"}},
		{"too much YAML", "a.yaml", "description: " + strings.Repeat("x", frontmatter.Limit), []string{"a.yaml:1: the YAML has"}},
		{"too much JSON", "a.json", `{"description": "` + strings.Repeat("x", frontmatter.Limit) + `"}`, []string{"a.json:1: the file has"}},
		{"too much", "a.md", strings.Repeat("x", 1<<20+1), []string{"a.md: it is longer than the maximum of 1048576 bytes"}},
		{"a name that is taken", "b.yaml", "name: good\n", []string{`b.yaml: the agent "good" is already declared in a-good.md`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			declared, problems := subagent.Load(fstest.MapFS{
				"a-good.md": {Data: []byte("---\nname: good\n---\nBe good.\n")}, "z.json": {Data: []byte(`{}`)}, test.file: {Data: []byte(test.text)},
				"notes.txt": {Data: []byte("no agent")}, ".hidden.md": {Data: []byte("no agent")}, "below/c.md": {Data: []byte("no agent")},
			})
			if len(declared) != 2 || declared[0].Name != "good" || declared[1].Name != "z" {
				t.Errorf("the good ones are %+v", declared)
			}
			if len(problems) != len(test.want) {
				t.Fatalf("problems = %v, want %q", problems, test.want)
			}
			for i := range problems {
				if got := problems[i].Error(); !strings.HasPrefix(got, test.want[i]) {
					t.Errorf("problem %d = %s, want %s", i, got, test.want[i])
				}
			}
		})
	}
}

func TestParseRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	if _, problems := subagent.Parse("a.toml", nil); len(problems) != 1 || !strings.Contains(problems[0].Message, "its extension must be") {
		t.Errorf("problems = %v", problems)
	}
}

// SPEC S-08
func TestLoadDir(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(outside, "secret.md"): "---\nname: secret\n---\n", filepath.Join(dir, "good.md"): "---\nname: good\n---\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := 0
	if runtime.GOOS != "windows" {
		want = 1
		if err := errors.Join(
			os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "link.md")),
			os.Symlink("good.md", filepath.Join(dir, "same.txt")),
		); err != nil {
			t.Fatal(err)
		}
	}
	declared, problems := subagent.LoadDir(dir)
	if len(declared) != 1 || declared[0].Path != filepath.Join(dir, "good.md") {
		t.Errorf("declared = %+v", declared)
	}
	if len(problems) != want || want > 0 && !strings.HasPrefix(problems[0].Error(), filepath.Join(dir, "link.md")+": it cannot be read: ") {
		t.Errorf("problems = %v, want that a link leads out", problems)
	}
	if declared, problems := subagent.LoadDir(filepath.Join(dir, "none")); declared != nil || problems != nil {
		t.Errorf("a directory that is not there: %v, %v", declared, problems)
	}
	if declared, problems := subagent.LoadDir(filepath.Join(dir, "good.md")); declared != nil || len(problems) != 1 {
		t.Errorf("a directory that is a file: %v, %v", declared, problems)
	}
}

// SPEC S-08
func TestADeclaredAgentIsASubagent(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, store belay.Store) {
		declared, problems := subagent.Load(fstest.MapFS{"reviewer.md": {Data: []byte(inMarkdown)}})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		child := script(tellsSystem())
		build := func(_ context.Context, task *subagent.Task, d *subagent.Declaration) (*belay.Agent, error) {
			if d.Model != "scripted/small" {
				return nil, fmt.Errorf("no model %q", d.Model)
			}
			return belay.New(child, &belay.Options{Name: d.Name, Instructions: d.Prompt, Scope: d.Tools, Budget: d.Budget, Store: task.Store})
		}
		d := declared[0]
		agent := parentOf(t, script(calls(invoke("reviewer", "look")), says("done")), store, subagent.Subagent{Name: d.Name, Description: d.Description, Factory: d.Factory(build)})
		h := take(t, agent.Session("s").Run(t.Context(), "go"))
		h.ended(t, belay.EndTurn)
		if got := content(t, h.results()[0]); !strings.Contains(got, "Be brief.") {
			t.Errorf("the child was instructed %q", got)
		}
	})
}

// FuzzParse checks that Parse ends for any input, and that reported lines are inside the
// file.
func FuzzParse(f *testing.F) {
	f.Add("a.md", inMarkdown)
	f.Add("a.yaml", inYAML)
	f.Add("a.json", inJSON)
	f.Fuzz(func(t *testing.T, file, text string) {
		d, problems := subagent.Parse(file, []byte(text))
		if d == nil || d.Path != file {
			t.Fatalf("declaration = %+v", d)
		}
		for _, p := range problems {
			if p.Line < 0 || p.Line > strings.Count(text, "\n")+1 || p.Message == "" {
				t.Errorf("problem = %+v in a file of %d lines", p, strings.Count(text, "\n")+1)
			}
		}
	})
}
