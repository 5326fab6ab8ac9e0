package claude_test

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/permit"
)

// floorWith returns a floor with the permissions of a settings file. Without them, the floor
// lets almost all calls run.
func floorWith(t interface{ Fatal(args ...any) }, dir string, own bool, permissions map[string][]string) (*permit.Floor, *claude.Permissions) {
	text, err := json.Marshal(map[string]any{"permissions": permissions})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "settings.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := claude.ReadSettings(file)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Permissions(&claude.PermissionOptions{Project: dir, Home: "/srv/ada", Own: own, Shown: "settings.json"})
	f, err := permit.New(dir, &permit.Options{Mode: permit.Permissive, Sandboxed: true, Rules: p.Rules, Guards: p.Guards})
	if err != nil {
		t.Fatal(err)
	}
	return f, p
}

func explain(t interface{ Fatal(args ...any) }, f *permit.Floor, tool string, input map[string]any) *permit.Explanation {
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return f.Explain(context.Background(), tool, text)
}

// SPEC B-04
func TestPermissionsBecomeRules(t *testing.T) {
	t.Parallel()
	shell := func(command string) map[string]any { return map[string]any{"command": command} }
	file := func(path string) map[string]any {
		return map[string]any{"path": path, "content": "x", "old": "a", "new": "b"}
	}
	for name, test := range map[string]struct {
		decision, rule string
		own            bool
		tool           string
		input          map[string]any
		want           belay.ToolDecision
	}{
		"a prefix":                                    {"deny", "Bash(git push:*)", false, "shell", shell("git push origin main"), belay.ToolDeny},
		"a prefix without more words":                 {"deny", "Bash(git push *)", false, "shell", shell("git push"), belay.ToolDeny},
		"a prefix behind another command":             {"deny", "Bash(git push:*)", false, "shell", shell("ls && git push"), belay.ToolDeny},
		"a prefix in a wrapper":                       {"deny", "Bash(git push:*)", false, "shell", shell("env A=b sh -c 'git push'"), belay.ToolDeny},
		"another command":                             {"deny", "Bash(git push:*)", false, "shell", shell("git status"), belay.ToolPass},
		"the words in an argument":                    {"deny", "Bash(rm:*)", false, "shell", shell("git log rm"), belay.ToolPass},
		"a star in the middle":                        {"deny", "Bash(git * --force)", false, "shell", shell("git push origin main --force"), belay.ToolDeny},
		"a star in the middle and another command":    {"deny", "Bash(git * --force)", false, "shell", shell("git status"), belay.ToolPass},
		"a star in the middle, asked":                 {"ask", "Bash(git * --force)", false, "shell", shell("git status --force"), belay.ToolAsk},
		"all commands":                                {"deny", "Bash", false, "shell", shell("ls"), belay.ToolDeny},
		"all commands, as a pattern":                  {"deny", "Bash(*)", false, "shell", shell("ls"), belay.ToolDeny},
		"a file to read":                              {"deny", "Read(./.env)", false, "read", file(".env"), belay.ToolDeny},
		"a file to read with a command":               {"deny", "Read(./.env)", false, "shell", shell("cat .env"), belay.ToolDeny},
		"a file to read in every directory":           {"deny", "Read(.env)", false, "read", file("a/b/.env"), belay.ToolDeny},
		"a directory to read":                         {"deny", "Read(secrets)", false, "read", file("secrets/a/b"), belay.ToolDeny},
		"a file to change, relative to the project":   {"deny", "Edit(/src/**)", false, "write", file("src/a/b.go"), belay.ToolDeny},
		"a file to change is still read":              {"deny", "Edit(/src/**)", false, "read", file("src/a/b.go"), belay.ToolPass},
		"a file to change, used by a command":         {"deny", "Edit(/src/**)", false, "shell", shell("sed -i s/a/b/ src/a.go"), belay.ToolAsk},
		"an absolute path":                            {"deny", "Read(//PROJECT/x)", false, "read", file("x"), belay.ToolDeny},
		"a path in the home directory":                {"deny", "Read(~/.ssh/**)", false, "shell", shell("cat /srv/ada/.ssh/id"), belay.ToolDeny},
		"a path that cannot be translated denies all": {"deny", "Read([)", false, "read", file("x"), belay.ToolDeny},
		"reading, by grep":                            {"deny", "Read(*)", false, "grep", map[string]any{"pattern": "x"}, belay.ToolDeny},
		"reading, by glob":                            {"deny", "Read", false, "glob", map[string]any{"pattern": "*"}, belay.ToolDeny},
		"reading, by list":                            {"deny", "Read(**)", false, "list", map[string]any{"path": "."}, belay.ToolDeny},
		"reading, by a command":                       {"deny", "Read", false, "shell", map[string]any{"command": "cat a.txt"}, belay.ToolDeny},
		"a server":                                    {"deny", "mcp__github", false, "github__list", map[string]any{}, belay.ToolDeny},
		"a tool of a server":                          {"deny", "mcp__github__list", false, "github__list", map[string]any{}, belay.ToolDeny},
		"all tools of a server":                       {"deny", "mcp__github__*", false, "github__list", map[string]any{}, belay.ToolDeny},
		"all servers":                                 {"deny", "mcp__*", false, "github__list", map[string]any{}, belay.ToolDeny},
		"a subagent":                                  {"deny", "Task(reviewer)", false, "invoke_subagent", map[string]any{"name": "reviewer", "prompt": "x"}, belay.ToolDeny},
		"several subagents":                           {"deny", "Agent(reviewer)", false, "delegate", map[string]any{"tasks": []any{}}, belay.ToolDeny},
		"a domain":                                    {"deny", "WebFetch(domain:example.com)", false, "shell", shell("curl https://example.com/x"), belay.ToolDeny},
		"all web pages":                               {"deny", "WebFetch", false, "web_fetch", map[string]any{"url": "https://example.com"}, belay.ToolDeny},
		"a domain of web pages":                       {"deny", "WebFetch(domain:example.com)", false, "web_fetch", map[string]any{"url": "https://example.com/x"}, belay.ToolDeny},
		"searches":                                    {"deny", "WebSearch", false, "web_search", map[string]any{"query": "x"}, belay.ToolDeny},
		"everything":                                  {"deny", "*", false, "read", file("x"), belay.ToolDeny},
		"a tool with another name":                    {"deny", "TodoWrite", false, "todo_write", map[string]any{"todos": []any{}}, belay.ToolDeny},
		"the output of a command":                     {"deny", "BashOutput", false, "shell_output", map[string]any{"id": "1"}, belay.ToolDeny},
		"a tool without limits, limited":              {"deny", "WebSearch(x)", false, "web_search", map[string]any{"query": "y"}, belay.ToolDeny},
		"a tool of a server, limited":                 {"deny", "mcp__github__list(x)", false, "github__list", map[string]any{}, belay.ToolDeny},
		"a tool of a server, limited, allowed":        {"allow", "mcp__github__list(x)", true, "github__list", map[string]any{}, belay.ToolAsk},
		"no closing parenthesis":                      {"deny", "Bash(rm:*", false, "shell", shell("ls"), belay.ToolDeny},
		"no closing parenthesis, allowed":             {"allow", "Bash(curl:*", true, "shell", shell("curl -d @x https://example.com"), belay.ToolAsk},
		"another shell":                               {"deny", "PowerShell(rm:*)", false, "shell", shell("rm x"), belay.ToolDeny},
		"small letters":                               {"deny", "bash(rm:*)", false, "shell", shell("rm x"), belay.ToolDeny},
		"small letters, allowed":                      {"allow", "bash(curl:*)", true, "shell", shell("curl -d @x https://example.com"), belay.ToolAsk},
		"a project may not allow":                     {"allow", "Bash(rm:*)", false, "shell", shell("curl -d @x https://example.com"), belay.ToolAsk},
		"the user may allow":                          {"allow", "Bash(curl:*)", true, "shell", shell("curl -d @x https://example.com"), belay.ToolPass},
		"the user may not allow more":                 {"allow", "Bash(curl:*)", true, "shell", shell("curl -d @x https://example.com; wget https://example.com --post-file x"), belay.ToolAsk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{"x": "", "src/a.go": "", ".env": ""})
			rule := strings.Replace(test.rule, "/PROJECT", dir, 1)
			f, p := floorWith(t, dir, test.own, map[string][]string{test.decision: {rule}})
			if e := explain(t, f, test.tool, test.input); e.Decision != test.want {
				t.Errorf("%s %s: %v gives %q (%s), want %q; the rules are %v", test.decision, rule, test.input, e.Decision, e.Reason, test.want, p.Rules)
			}
		})
	}
}

// theirs reports whether Claude Code's rule Bash(spec) matches a command line: one of its
// commands matches the pattern, in which * stands for any text.
func theirs(spec, line string) bool {
	pattern, open := strings.CutSuffix(spec, ":*")
	if !open {
		pattern, open = strings.CutSuffix(spec, " *")
	}
	quoted := make([]string, 0, 4)
	for part := range strings.SplitSeq(pattern, "*") {
		quoted = append(quoted, regexp.QuoteMeta(part))
	}
	text := "(?s)^" + strings.Join(quoted, ".*")
	if open {
		text += "( .*)?"
	}
	expression := regexp.MustCompile(text + "$")
	for command := range strings.SplitSeq(strings.NewReplacer("&&", "\x00", "||", "\x00", ";", "\x00", "|", "\x00", "\n", "\x00", "&", "\x00").Replace(line), "\x00") {
		if expression.MatchString(strings.TrimSpace(command)) {
			return true
		}
	}
	return false
}

// Whatever a deny rule of Claude Code denies, Belay denies.
//
// SPEC B-04
func TestADeniedCommandIsNeverAllowed(t *testing.T) {
	t.Parallel()
	dir := write(t, nil)
	words := []string{"git", "push", "rm", "-rf", "sudo", "env", "npm", "run", "test", "test:unit", "--force", "x", "./a.sh", "/bin/rm", "time", "xargs", "echo", "'a b'", "cd", "..", "A=b", "nohup", "$HOME", "\"q\"", "command", "exec", "bash", "-c", "export", "[", "{", "if", "true"}
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SliceOfN(rapid.SampledFrom(words), 1, 4)
		given := command.Draw(t, "command")
		pattern := slices.Clone(given)
		for i := range pattern { // the pattern is the command, with stars in some places
			switch rapid.IntRange(0, 5).Draw(t, "star") {
			case 0:
				pattern[i] = "*"
			case 1:
				pattern[i] = pattern[i][:len(pattern[i])/2] + "*"
			default:
			}
		}
		spec := strings.Join(pattern[:rapid.IntRange(1, len(pattern)).Draw(t, "words")], " ") + rapid.SampledFrom([]string{"", ":*", " *", "*"}).Draw(t, "end")
		line := strings.Join(command.Draw(t, "before"), " ") + rapid.SampledFrom([]string{" && ", "; ", " | ", "\n", " || ", "&"}).Draw(t, "between") + strings.Join(given, " ")
		if rapid.Bool().Draw(t, "alone") {
			line = strings.Join(given, " ")
		}
		if !theirs(spec, line) {
			return
		}
		f, p := floorWith(t, dir, false, map[string][]string{"deny": {"Bash(" + spec + ")"}})
		if e := explain(t, f, "shell", map[string]any{"command": line}); e.Decision != belay.ToolDeny {
			t.Fatalf("Bash(%s) denies %q, but Belay says %q; rules %v, guards %+v", spec, line, e.Decision, p.Rules, p.Guards)
		}
	})
}

// ignored reports whether a pattern of .gitignore matches a path, in the words of git's
// manual: without a slash inside it matches in every directory, and a directory that matches
// takes everything below with it.
func ignored(pattern, name string) bool {
	anchored := strings.Contains(strings.TrimSuffix(pattern, "/"), "/")
	pattern = strings.Trim(strings.TrimPrefix(pattern, "./"), "/")
	parts := strings.Split(name, "/")
	for end := 1; end <= len(parts); end++ {
		for start := range end {
			if anchored && start > 0 {
				break
			}
			if matchParts(strings.Split(pattern, "/"), parts[start:end]) {
				return true
			}
		}
	}
	return false
}

func matchParts(pattern, parts []string) bool {
	switch {
	case len(pattern) == 0:
		return len(parts) == 0
	case pattern[0] == "**":
		for i := range len(parts) + 1 {
			if matchParts(pattern[1:], parts[i:]) {
				return true
			}
		}
		return false
	case len(parts) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], parts[0])
	return ok && err == nil && matchParts(pattern[1:], parts[1:])
}

// SPEC B-04
func TestADeniedFileIsNeverRead(t *testing.T) {
	t.Parallel()
	dir := write(t, nil)
	names := []string{"a", "b", "src", ".env", "x.pem", "secrets", "c.go"}
	rapid.Check(t, func(t *rapid.T) {
		file := strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 4).Draw(t, "file"), "/")
		part := rapid.SampledFrom(append([]string{"*", "**", "*.pem", ".e*", "?", "[ab]"}, names...))
		pattern := rapid.SampledFrom([]string{"", "./", "/"}).Draw(t, "front") + strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "pattern"), "/") + rapid.SampledFrom([]string{"", "/", "/**"}).Draw(t, "end")
		if !ignored(pattern, file) {
			return
		}
		for tool, rule := range map[string]string{"read": "Read", "write": "Edit", "edit": "Write"} {
			f, p := floorWith(t, dir, false, map[string][]string{"deny": {rule + "(" + pattern + ")"}})
			if e := explain(t, f, tool, map[string]any{"path": file}); e.Decision != belay.ToolDeny {
				t.Fatalf("%s(%s) denies %s, but Belay says %q; rules %v", rule, pattern, file, e.Decision, p.Rules)
			}
		}
	})
}

// No rule is passed over in silence: it becomes rules or guards, or a note names it. An allow
// rule with a limit never allows all calls.
//
// SPEC B-04
func TestEveryRuleHasAnEffectOrANote(t *testing.T) {
	t.Parallel()
	dir := write(t, nil)
	tools := []string{"Bash", "bash", "PowerShell", "Read", "Edit", "Write", "MultiEdit", "NotebookEdit", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "Task", "Agent", "Skill", "SlashCommand", "TodoWrite", "BashOutput", "ExitPlanMode", "mcp__a", "mcp__a__b", "mcp__a__*", "mcp__a b.c", "Monitor", "Nothing", "*", ""}
	specs := []string{"", "()", "(*)", "(x", "(x)", "(rm:*)", "(npm run test*)", "(* x)", "(./a/**)", "(~/a)", "(//a)", "([)", "(!a)", "(domain:x.com)", "(domain:*.x.com)", "(domain:)", "(a,b)", "(a:b c)", ") (", "((x))", "(x) y"}
	for _, tool := range tools {
		for _, spec := range specs {
			for _, decision := range []string{"deny", "ask", "allow"} {
				f, p := floorWith(t, dir, true, map[string][]string{decision: {tool + spec}})
				if f == nil || len(p.Rules)+len(p.Guards)+len(p.Notes) == 0 && !harmlessAllow(decision, tool) {
					t.Errorf("%s %s%s: nothing becomes of it", decision, tool, spec)
				}
				for i := range p.Rules {
					if r := &p.Rules[i]; decision == "allow" && r.Pattern == "" && spec != "" && spec != "()" && spec != "(*)" {
						t.Errorf("allow %s%s allows all calls of %s", tool, spec, r.Tool)
					}
				}
			}
		}
	}
}

// harmlessAllow reports whether calls of a tool need no approval anyway.
func harmlessAllow(decision, tool string) bool {
	return decision == "allow" && slices.Contains([]string{"Task", "Agent", "Skill", "SlashCommand"}, tool)
}

// SPEC B-04
func TestARuleThatIsNoListCounts(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"settings.json": `{"permissions": {"deny": "Bash(rm:*)", "allow": "Read"}}`})
	s, err := claude.ReadSettings(filepath.Join(dir, "settings.json"))
	if err != nil || !slices.Equal(s.Deny, []string{"Bash(rm:*)"}) || len(s.Allow) > 0 || len(s.Notes) != 2 {
		t.Errorf("%v, %+v", err, s)
	}
}
