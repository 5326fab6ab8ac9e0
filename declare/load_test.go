package declare_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/hook"
)

const everything = `# all there is
secrets: [DEPLOY_KEY]
hooks:
  - id: team/audit
    name: Audit
    description: keeps a record
    version: "3"
    phase: tool.post
    match:
      tools: [write, "edit*"]
      agents: [main]
      labels: { class: [failed, timeout] }
      when: input.is_error && args.path != ""
    command: [./check.sh, --strict, ""]
    env: [GITHUB_TOKEN, MODE=fast]
    timeout: 90s
    after: [first]
    before: [last, other]
    priority: -3
    execution: background
    failure: open
    visibility: user_visible
    capabilities: [audit, jobs]
    idempotent: true
    retry: { attempts: 3, delay: 2s, exponential: true, cap: 1m, jitter: 0.5 }
    shadow: true
    inherit: false
    enabled: false
`

// SPEC C-01, H-02, H-15, H-21
func TestLoadReadsEverything(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	script := p.put("check.sh", "#!/bin/sh\n")
	file := p.put("hooks.yaml", everything)
	declared, err := declare.Load(p.dir, file)
	if err != nil || len(declared) != 1 {
		t.Fatalf("%d declarations, %v", len(declared), err)
	}
	d := declared[0]
	if d.Options.Match.When == nil || d.Options.Match.When.String() != `input.is_error && args.path != ""` {
		t.Errorf("when = %v", d.Options.Match.When)
	}
	d.Options.Match.When = nil
	want := hook.Options{
		Name: "Audit", Description: "keeps a record", Version: "3", Priority: -3, After: []string{"first"}, Before: []string{"last", "other"},
		Execution: hook.Background, Timeout: 90 * time.Second, Failure: hook.Open, Visibility: hook.VisibleToUser,
		Match:        hook.Match{Tools: []string{"write", "edit*"}, Agents: []string{"main"}, Labels: map[string][]string{"class": {"failed", "timeout"}}},
		Capabilities: hook.CanAudit | hook.CanSchedule, Idempotent: true,
		Retry:  hook.Retry{Attempts: 3, Delay: 2 * time.Second, Exponential: true, Cap: time.Minute, Jitter: 0.5},
		Shadow: true, NoInherit: true, Disabled: true,
	}
	if diff := cmp.Diff(want, d.Options, cmp.Comparer(func(a, b hook.Failure) bool { return a == b })); diff != "" {
		t.Errorf("options (-want +got):\n%s", diff)
	}
	got := []any{d.ID, d.Phase, d.File, d.Line, d.Dir, d.Kind, d.Argv, d.Scripts, d.Env, d.Secrets}
	if diff := cmp.Diff([]any{
		"team/audit", "tool.post", file, 4, p.dir, hook.HandlerCommand,
		[]string{"./check.sh", "--strict", ""},
		[]string{script},
		[]string{"GITHUB_TOKEN", "MODE=fast"},
		[]string{"DEPLOY_KEY"},
	}, got); diff != "" {
		t.Errorf("declaration (-want +got):\n%s", diff)
	}
	set, err := declare.New(declared, hook.Origin{Kind: hook.OriginSpace, Name: "demo"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := only(t, set).Options()
	if opts.Kind != hook.HandlerCommand || opts.Origin != (hook.Origin{Kind: hook.OriginSpace, Name: "demo", File: file, Line: 4}) {
		t.Errorf("kind %s, origin %+v: want those of the file", opts.Kind, opts.Origin)
	}
}

// The same hooks give the same result in JSON as in YAML.
//
// SPEC C-01
func TestLoadReadsJSON(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.put("check.sh", "#!/bin/sh\n")
	file := p.put("hooks.json", "{\"hooks\": [\n\t{\"id\": \"a\", \"phase\": \"tool.pre\", \"run\": \"./check.sh\", \"timeout\": \"2s\",\n\t \"match\": {\"tools\": [\"write\"]}},\n\t{\"id\": \"b\", \"phase\": \"tool.pre\", \"action\": {\"deny\": \"no\"}, \"priority\": 2}]}\n")
	declared, err := declare.Load(p.dir, file)
	if err != nil || len(declared) != 2 || declared[0].Line != 2 || declared[1].Line != 4 || declared[1].Options.Priority != 2 || declared[1].Action.Text != "no" {
		t.Errorf("declared = %+v, %v", declared, err)
	}
}

// A file in the format of another program gives one fault that says so.
//
// SPEC W-04
func TestLoadKnowsTheFormOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionStart", "SessionEnd", "PreCompact", "SubagentStop"} {
		inner := `{"` + moment + `": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "x"}]}], "Other": []}`
		for _, text := range []string{inner, `{"model": "opus", "hooks": ` + inner + `}`} {
			_, err := declare.Parse("settings.json", []byte(text))
			if faults := declare.Faults(err); len(faults) != 1 || !strings.Contains(faults[0].Message, "the format of Claude Code") || !strings.Contains(faults[0].Message, moment+" is called ") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// SPEC W-04, C-01
func TestLoadNamesFaults(t *testing.T) {
	t.Parallel()
	hooks := func(lines ...string) string {
		return "hooks:\n  - id: a\n    phase: tool.pre\n    " + strings.Join(lines, "\n    ")
	}
	for _, test := range []struct {
		rule string
		text string
		line int
		want string
	}{
		{"an unknown key has a suggestion", hooks("run: exit", "match: { tol: [write] }"), 5, `unknown key "tol" (did you mean "tools"?)`},
		{"an unknown key of a hook", hooks("run: exit", "timeot: 5s"), 5, `unknown key "timeot" (did you mean "timeout"?)`},
		{"an unknown key of the file", "hoks: []\n", 1, `unknown key "hoks" (did you mean "hooks"?)`},
		{"an unknown key that is like none", hooks("run: exit", "zzzzzz: 5s"), 5, `a hook takes action, after`},
		{"a key that says what runs, misspelled", hooks("runn: exit"), 4, `unknown key "runn" (did you mean "run"?)`},
		{"a key twice", hooks("run: exit", "run: other"), 5, `the key "run" occurs twice`},
		{"a text for a list", hooks("run: exit", "after: audit"), 5, "after is a text: write a list"},
		{"a number for a text", hooks("run: exit", "name: 7"), 5, "name is a number: put quotes around it"},
		{"a list for a text", hooks("run: [ls]"), 4, "run is a list: write a text"},
		{"a text for a command", hooks("command: ls -l"), 4, "command is a text: write the program and its arguments as a list"},
		{"an empty command", hooks("command: []"), 4, "command is not a list, or is empty"},
		{"a number in a command", hooks("command: [sleep, 5]"), 4, "an entry of command is a number: put quotes around it"},
		{"a text for a truth", hooks("run: exit", `shadow: "yes"`), 5, "shadow is a text: write true or false"},
		{"a duration without a unit", hooks("run: exit", "timeout: 5"), 5, "timeout is not a duration: write it with its unit"},
		{"a negative duration", hooks("run: exit", "timeout: -5s"), 5, "must be more than zero"},
		{"a fraction for a number", hooks("run: exit", "priority: 1.5"), 5, "priority is not a whole number"},
		{"no value", hooks("run: exit", "match:"), 5, "match has no value"},
		{"an empty text", hooks(`run: " "`), 4, "run is empty"},
		{"an empty list", hooks("run: exit", "after: []"), 5, "after is an empty list"},
		{"tabs", "hooks:\n\t- id: a\n", 2, "tabs"},
		{"an anchor", hooks("run: &a exit"), 4, "anchors and aliases are not supported here"},
		{"a bomb", "a: &a [x, x]\nb: &b [*a, *a]\nhooks: [*b, *b]\n", 1, "anchors and aliases are not supported here"},
		{"a merge key", hooks("run: exit", "<<: {name: b}"), 5, "merge key"},
		{"a tag", hooks("run: !!binary exit"), 4, "the tag !!binary is not supported"},
		{"a second document", hooks("run: exit") + "\n---\nhooks: []\n", 6, "a second document"},
		{"a colon that is not quoted", hooks("name: a: b", "run: exit"), 4, "put quotes around a value with a colon"},
		{"what is not text", "hooks: \xff\n", 1, "UTF-8"},
		{"no mapping", "- a\n", 1, "write a mapping"},
		{"hooks that are no list", "hooks: all\n", 1, "hooks is a text: write a list of hooks"},
		{"a hook that is no mapping", "hooks:\n  - a\n", 2, "a hook is a text: write a mapping"},
		{"no id", "hooks:\n  - phase: tool.pre\n    run: exit\n", 2, "the hook has no id"},
		{"a bad id", "hooks:\n  - id: a b\n    phase: tool.pre\n    run: exit\n", 2, "use 1 to 128 letters"},
		{"no phase", "hooks:\n  - id: a\n    run: exit\n", 2, "the hook has no phase"},
		{"an unknown phase", "hooks:\n  - id: a\n    phase: tool.per\n    run: exit\n", 3, `there is no phase "tool.per" (did you mean "tool.pre"?)`},
		{"nothing to run", hooks("name: b"), 2, "the hook runs nothing: give it one of run, command, worker, webhook, action"},
		{"two things to run", hooks("run: exit", "action: log"), 5, "run and action: remove one of them"},
		{"the same id on the same phase", hooks("run: exit") + "\n  - id: a\n    phase: tool.pre\n    run: exit\n", 5, `the id "a" is already used on tool.pre, by the hook at `},
		{"an unknown word", hooks("run: exit", "execution: blockin"), 5, `unknown value "blockin" (did you mean "blocking"?)`},
		{"an unknown failure mode", hooks("run: exit", "failure: close"), 5, `unknown value "close" (did you mean "closed"?)`},
		{"an unknown capability", hooks("run: exit", "capabilities: [blok]"), 5, `unknown capability "blok" (did you mean "block"?)`},
		{"a capability that the phase has no use for", hooks("run: exit", "capabilities: [sections]"), 5, "tool.pre does not support sections"},
		{"a label that the phase does not have", hooks("run: exit", "match: { labels: { source: [new] } }"), 5, "inputs of tool.pre have no source"},
		{"tools at a phase without", "hooks:\n  - id: a\n    phase: turn.stop\n    run: exit\n    match: { tools: [write] }\n", 5, "inputs of turn.stop have no tool"},
		{"a fallback that is no answer", hooks("run: exit", "failure: { fallback: { decisio: ask } }"), 5, `this property does not exist (did you mean "decision"?)`},
		{"an expression that does not parse", hooks("run: exit", "match: { when: 'args.path ==' }"), 5, "when: the expression is not complete"},
		{"an expression over a field that is not there", hooks("run: exit", `match: { when: 'input.tol == "x"' }`), 5, "undefined field 'tol'"},
		{"an expression of a wrong type", hooks("run: exit", `match: { when: input.tool }`), 5, "must be true or false"},
		{"an expression over types that differ", hooks("run: exit", `match: { when: input.tool == 3 }`), 5, "no matching overload"},
		{"args where no tool is", "hooks:\n  - id: a\n    phase: turn.stop\n    run: exit\n    match: { when: 'args.path == \"a\"' }\n", 5, "turn.stop has no tool input"},
		{"a value for the name of a variable", hooks("run: exit", "env: ['a b=c']"), 5, "is not the name of an environment variable"},
		{"a variable that is Belay's", hooks("run: exit", "env: [BELAY_PHASE=x]"), 5, "Belay itself sets the variable BELAY_PHASE"},
		{"variables of a webhook", hooks("webhook: https://example.com/", "env: [A]"), 5, "env works only for commands and workers"},
		{"a webhook without TLS", hooks("webhook: http://example.com/"), 4, "the URL must begin with https"},
		{"a webhook with a password", hooks("webhook: https://u:p@example.com/"), 4, "a user or a password"},
		{"a webhook without an address", hooks("webhook: { secret: KEY }"), 4, "the webhook has no url"},
		{"a secret in the file", hooks("webhook: { url: 'https://example.com/', secret: 's3cr3t!' }"), 4, "write the name of the variable here"},
		{"a value under secrets", "secrets: ['s3cr3t!']\n", 1, "secrets lists names, not values"},
		{"an unknown action", hooks("action: aprove"), 4, `unknown value "aprove" (did you mean "approve"?)`},
		{"two actions", hooks("action: { deny: a, remind: b }"), 4, "two actions, deny and remind"},
		{"save_json without a file", hooks("action: save_json"), 4, "save_json has no file"},
		{"save_json out of the directory", hooks("action: { save_json: ../a.jsonl }"), 4, "outside the directory of the hook file"},
		{"save_json into another sort of file", hooks("action: { save_json: .git/hooks/pre-commit }"), 4, "ends in .jsonl"},
		{"remind without a text", hooks("action: remind"), 4, "remind has no text"},
		{"deny where nothing can be", "hooks:\n  - id: a\n    phase: tool.post\n    action: deny\n", 4, "there is nothing to deny at tool.post"},
		{"approve where nobody can be asked", "hooks:\n  - id: a\n    phase: turn.stop\n    action: approve\n", 4, "use phase tool.pre"},
		{"a moment of another program", "hooks:\n  - id: a\n    phase: PreToolUse\n    run: exit\n", 3, `there is no phase "PreToolUse" (did you mean "tool.pre"?)`},
		{"another moment of it", "hooks:\n  - id: a\n    phase: SubagentStop\n    run: exit\n", 3, `(did you mean "subagent.stop"?)`},
		{"one hook in place of a list", "hooks:\n  id: a\n  phase: tool.pre\n  run: exit\n", 2, "hooks must be a list, but it is a single hook: write - before"},
		{"keys of match beside it", hooks("run: exit", "tools: [write]"), 5, `unknown key "tools": it belongs to match: write match: {tools: …}`},
		{"a key that is indented too little", hooks("run: exit\n   timeout: 5s"), 5, "begin in one column"},
		{"a key that is indented too far", hooks("run: exit\n     timeout: 5s"), 4, "indent the keys of one hook equally"},
		{"a key without a colon", "hooks:\n  - id a\n    phase: tool.pre\n", 2, "is a colon missing here"},
		{"an unknown bucket", "hooks:\n  onTolCall: []\n", 2, `did you mean "onToolCall"?`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			declared, err := declare.Parse("hooks.yaml", []byte(test.text))
			wantFault(t, err, test.line, test.want)
			if err != nil && !strings.HasPrefix(err.Error(), "hooks.yaml:") {
				t.Errorf("err = %v, want it to begin with the file", err)
			}
			for _, d := range declared {
				if d.Line >= test.line {
					t.Errorf("the hook at line %d was declared all the same", d.Line)
				}
			}
		})
	}
}

// SPEC W-04
func TestLoadNamesFaultsOfJSON(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		text string
		line int
		want string
	}{
		{"an unknown key", "{\"hooks\": [\n{\"id\": \"a\",\n\"phase\": \"tool.pre\", \"run\": \"exit\",\n\"naem\": \"b\"}]}", 4, `did you mean "name"?`},
		{"a key twice", "{\"hooks\": [],\n\"hooks\": []}", 2, "occurs twice"},
		{"no JSON", "{\"hooks\": [\n,]}", 2, "it is not JSON"},
		{"two values", "{}\n{}", 2, "text after the JSON value"},
		{"too deep", strings.Repeat("[", 100), 1, "nested more than"},
	} {
		_, err := declare.Parse("hooks.json", []byte(test.text))
		t.Log(test.rule)
		wantFault(t, err, test.line, test.want)
	}
}

// SPEC W-04, C-01
func TestLoadLooksAtScripts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rule, line, want string }{
		{"a script that is missing", "run: ./none.sh", "./none.sh cannot be found"},
		{"a script that is missing, as a command", "command: [./none.sh]", "./none.sh cannot be found"},
		{"a script that is an argument", "command: [python3, ./none.py]", "./none.py cannot be found"},
		{"a script of a worker", "worker: [./none]", "./none cannot be found"},
		{"a script that is not executable", "run: ./plain.sh --now", "./plain.sh is not executable: run chmod +x ./plain.sh"},
		{"a script with the line ends of Windows", "run: ./crlf.sh", "save it with LF line ends"},
		{"one that a shell reads", "command: [sh, ./crlf2.sh]", "save it with LF line ends"},
		{"a path out of the directory", "run: ../outside.sh", "is outside of"},
		{"a link out of the directory", "command: [./link.sh]", "is outside of"},
		{"a directory", "run: ./sub", "is not a file"},
		{"a path without a dot", "command: [sub/none]", "sub/none cannot be found"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.put("outside.sh", "#!/bin/sh\n")
			p.put("in/plain.sh", "exit\n")
			p.put("in/crlf.sh", "#!/bin/sh\r\nexit\r\n")
			p.put("in/crlf2.sh", "exit 0\r\n")
			p.put("in/sub/a", "")
			if err := os.Symlink("../outside.sh", filepath.Join(p.dir, "in", "link.sh")); err != nil {
				t.Fatal(err)
			}
			declared, err := declare.Load(filepath.Join(p.dir, "in"), p.put("in/hooks.yaml", gate(test.line)))
			wantFault(t, err, 4, test.want)
			if len(declared) != 0 {
				t.Error("it was declared all the same")
			}
		})
	}
}

// SPEC W-04
func TestLoadFaultsDoNotHideTheRest(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	files := []string{
		p.put("a.yaml", gate("run: exit")), p.put("b.yaml", "hooks: [\n"), filepath.Join(p.dir, "none.yaml"),
		p.put("c.yaml", gate("run: exit")), p.put("d.yaml", "hooks:\n  - id: d\n    phase: turn.stop\n    run: exit\n    nme: x\n  - id: e\n    phase: turn.stop\n    run: exit\n"),
	}
	declared, err := declare.Load(p.dir, files...)
	var ids []string
	for _, d := range declared {
		ids = append(ids, d.ID)
	}
	if diff := cmp.Diff([]string{"gate", "e"}, ids); diff != "" {
		t.Errorf("declared (-want +got):\n%s", diff)
	}
	var at []string
	for _, f := range declare.Faults(err) {
		at = append(at, filepath.Base(f.File))
	}
	if diff := cmp.Diff([]string{"b.yaml", "none.yaml", "c.yaml", "d.yaml"}, at); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), `the id "gate" is already used on tool.pre, by the hook at `+files[0]+":2: choose another") {
		t.Errorf("err = %v, want both places of the id", err)
	}
}

// SPEC W-04
func TestLoadBoundsFiles(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := p.put("big.yaml", "hooks: []\n")
	if err := os.Truncate(file, 100<<20); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err := declare.Load(p.dir, file)
	wantFault(t, err, 1, "more than 64 KiB: split it")
	for name, text := range map[string]string{
		"nested.yaml": strings.Repeat("[", declare.Limit-1), "deep.yaml": "hooks: " + strings.Repeat("{a: ", 10_000), "many.yaml": strings.Repeat("- ", declare.Limit/2),
		"deep.json": `{"hooks": ` + strings.Repeat(`{"a":`, 10_000),
	} {
		if _, err := declare.Load(p.dir, p.put(name, text)); len(declare.Faults(err)) == 0 {
			t.Errorf("%s: err = %v, want a fault", name, err)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	_, err = declare.Load(p.dir, p.dir)
	wantFault(t, err, 1, "not a regular file")
	_, err = declare.Load(filepath.Join(p.dir, "none"), file)
	if err == nil {
		t.Error("a root that is not there: want an error")
	}
	p.put("sub/a.yaml", "")
	_, err = declare.Load(filepath.Join(p.dir, "sub"), file)
	wantFault(t, err, 1, "the file is not below")
}

// Each bucket of an agent file stands for a phase.
func TestLoadReadsBuckets(t *testing.T) {
	t.Parallel()
	declared, err := declare.Parse("a.yaml", []byte("hooks:\n  onToolCall:\n    - { id: a, action: deny }\n    - { id: b, phase: tool.pre, action: deny }\n  onComplete:\n    - { id: c, action: log }\n"))
	if err != nil || len(declared) != 3 || declared[0].Phase != "tool.pre" || declared[2].Phase != "turn.post_turn" {
		t.Errorf("declared = %+v, %v", declared, err)
	}
	_, err = declare.Parse("a.yaml", []byte("hooks:\n  onToolCall:\n    - { id: a, phase: tool.post, action: log }\n"))
	wantFault(t, err, 3, "the bucket is for the phase tool.pre, but the hook names the phase tool.post")
}

func FuzzParse(f *testing.F) {
	f.Add(everything, false)
	f.Add(`{"hooks": [{"id": "a", "phase": "tool.pre", "action": {"deny": "x"}}]}`, true)
	f.Fuzz(func(t *testing.T, text string, asJSON bool) {
		name := "hooks.yaml"
		if asJSON {
			name = "hooks.json"
		}
		declared, err := declare.Parse(name, []byte(text))
		if err != nil && len(declare.Faults(err)) == 0 {
			t.Errorf("err = %v, which is no fault", err)
		}
		if err == nil {
			if _, err := declare.New(declared, hook.Origin{}, nil); err != nil {
				t.Errorf("what was read without a fault cannot be used: %v", err)
			}
		}
	})
}
