package convert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/convert"
)

// setup writes files into a project and returns its settings.
func setup(t *testing.T, files map[string]string) *config.Loaded {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := t.TempDir()
	s, err := config.Load(&config.Options{Dir: dir, UserDir: filepath.Join(other, "user"), SystemDir: filepath.Join(other, "system"), Environ: []string{"HOME=" + filepath.Join(other, "home")}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every file of a setup becomes a file of Belay or a note.
func TestNothingOfASetupIsLeftOutInSilence(t *testing.T) { // SPEC B-07
	t.Parallel()
	for name, c := range map[string]struct {
		agent  dialect.Vendor
		files  map[string]string
		writes map[string]string // a part of the text, by file
		notes  []string
	}{
		"Codex": {
			agent: dialect.Codex,
			files: map[string]string{
				".codex/hooks.json":        `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"./guard.sh"}]}]}}`,
				".codex/config.toml":       "model = \"x\"\n[mcp_servers.wiki]\nurl = \"https://wiki.example.com/mcp\"\nbearer_token_env_var = \"WIKI\"\n[mcp_servers.old]\ncommand = \"npx\"\nargs = [\"old\"]\ndisabled_tools = [\"drop\"]\n",
				".codex/prompts/review.md": "Review $1.",
				".codex/odd":               "x",
			},
			writes: map[string]string{
				".belay/hooks/codex.yaml":       `dialect: {agent: codex, event: PreToolUse, matcher: "Bash", original: "`,
				".belay/mcp.json":               `"Authorization": "Bearer ${WIKI}"`,
				".belay/skills/review/SKILL.md": "metadata: {dialect: claude-code}",
			},
			notes: []string{"model: not translated: set model in belay.yaml", "server old is not translated: its key disabled_tools has no counterpart in Belay, and may limit it", ".codex/odd: not translated"},
		},
		"Gemini CLI": {
			agent: dialect.GeminiCLI,
			files: map[string]string{
				".gemini/settings.json":          `{"hooks":{"BeforeTool":[{"matcher":"write_.*","hooks":[{"type":"command","command":"x"}]},{"matcher":"replace","hooks":[{"type":"command","command":"x"}]}]},"excludeTools":["run_shell_command(rm -rf)","write_file"],"mcpServers":{"wiki":{"httpUrl":"https://wiki.example.com/mcp"}},"theme":"dark","tools":{"core":["read_file"]}}`,
				".gemini/commands/git/push.toml": "description = \"Pushes\"\nprompt = \"Push {{args}}.\"\n",
				".gemini/commands/run.toml":      "prompt = \"See !{git status}.\"\n",
				"GEMINI.md":                      "Be brief.",
			},
			writes: map[string]string{
				".belay/hooks/gemini-cli.yaml":    `matcher: "(?:write_.*)|(?:replace)", original: "`,
				".belay/mcp.json":                 `"url": "https://wiki.example.com/mcp"`,
				"belay.yaml":                      `- "deny shell(rm -rf)"`,
				".belay/skills/git-push/SKILL.md": "Push $ARGUMENTS.",
				"AGENTS.md":                       "Be brief.",
			},
			notes: []string{"theme: not translated", "tools.core: not translated", "run.toml: not translated: its text runs shell commands", "/git:push is /git-push"},
		},
		"Cursor": {
			agent: dialect.Cursor,
			files: map[string]string{
				".cursor/hooks.json":       `{"version":1,"hooks":{"beforeShellExecution":[{"command":"./x.sh"}]}}`,
				".cursor/mcp.json":         `{"mcpServers":{"wiki":{"url":"https://wiki.example.com/mcp","headers":{"Authorization":"Bearer ${env:WIKI}"}}}}`,
				".cursor/cli.json":         `{"permissions":{"allow":["Shell(ls)"],"deny":["Shell(rm)","Read(.env)","Mcp(db:drop)","Odd(x)"]}}`,
				".cursor/rules/always.mdc": "---\nalwaysApply: true\n---\nUse tabs.",
				".cursor/rules/docs.mdc":   "---\ndescription: Writes docs\n---\nWrite docs.",
				".cursor/rules/go.mdc":     "---\nglobs: \"*.go\"\n---\nUse gofmt.",
			},
			writes: map[string]string{
				".belay/mcp.json":             `"Authorization": "Bearer ${WIKI}"`,
				"belay.yaml":                  `- "deny mcp__db__drop"`,
				".belay/skills/docs/SKILL.md": "Write docs.",
				"AGENTS.md":                   "Use tabs.",
			},
			notes: []string{"beforeShellExecution (1): not translated", "deny Odd(x): not translated", "go.mdc: not translated: it applies only to *.go", "its allow rules (1) have no effect"},
		},
		"GitHub Copilot": {
			agent: dialect.Copilot,
			files: map[string]string{
				".github/copilot-instructions.md":          "Be kind.",
				".github/prompts/plan.prompt.md":           "---\ndescription: Plans\nmode: agent\n---\nPlan it.",
				".github/hooks/h.json":                     `{"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"./x.sh"}]}}`,
				".github/instructions/go.instructions.md":  "---\napplyTo: \"**/*.go\"\n---\nUse gofmt.",
				".github/instructions/all.instructions.md": "---\napplyTo: \"**\"\n---\nUse English.",
				".vscode/mcp.json":                         `{"servers":{"wiki":{"type":"http","url":"https://wiki.example.com/mcp"},"ask":{"command":"npx","env":{"KEY":"${input:key}"}}}}`,
			},
			writes: map[string]string{
				"AGENTS.md":                   "Be kind.\n\nUse English.",
				".belay/skills/plan/SKILL.md": "Plan it.\n\n$ARGUMENTS",
				".belay/mcp.json":             `"url": "https://wiki.example.com/mcp"`,
			},
			notes: []string{"preToolUse (1): not translated", "go.instructions.md: not translated", "server ask is not translated: KEY asks the user for a value", "mode has no effect"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, c.files)
			plan, err := convert.New(t.Context(), s, &convert.Options{Agent: c.agent})
			if err != nil {
				t.Fatal(err)
			}
			texts := make(map[string]string)
			for _, f := range plan.Files {
				rel, err := filepath.Rel(s.Project, f.Path)
				if err != nil {
					t.Fatal(err)
				}
				texts[filepath.ToSlash(rel)] = string(f.After)
			}
			for file, part := range c.writes {
				if !strings.Contains(texts[file], part) {
					t.Errorf("%s is\n%s\nwant %q in it", file, texts[file], part)
				}
				delete(texts, file)
			}
			for file, text := range texts {
				t.Errorf("an unexpected file %s:\n%s", file, text)
			}
			var notes []string
			for _, n := range plan.Notes {
				notes = append(notes, n.From+": "+n.Message)
			}
			for _, want := range c.notes {
				if !strings.Contains(strings.Join(notes, "\n"), want) {
					t.Errorf("no note says %q:\n%s", want, strings.Join(notes, "\n"))
				}
			}
			if _, err := plan.Write(false); err != nil {
				t.Fatal(err)
			}
			again, err := convert.New(t.Context(), s, &convert.Options{Agent: c.agent})
			if err != nil || len(again.Files) > 0 {
				t.Errorf("a second import would change %d files: %v", len(again.Files), err)
			}
		})
	}
}

// Git shares the mcp.json of a project, so the import names the secrets that it writes there.
func TestAnImportNamesSecretsInServers(t *testing.T) {
	t.Parallel()
	s := setup(t, map[string]string{".cursor/mcp.json": `{"mcpServers":{
		"a":{"url":"https://a.example.com/mcp","headers":{"Authorization":"Bearer ${env:WIKI}","X-Api-Key":"hunter2"}},
		"b":{"command":"npx","args":["b"],"env":{"MODE":"read","DB":"postgres://ann:hunter2@db/x","TOKEN":"hunter2"}},
		"c":{"command":"npx","args":["c"],"env":{"MODE":"read","TOKEN":"${env:TOKEN}"}}
	}}`})
	plan, err := convert.New(t.Context(), s, &convert.Options{Agent: dialect.Cursor})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range plan.Notes {
		if text, _, found := strings.Cut(n.Message, ", and git shares"); found {
			got = append(got, text)
		}
	}
	if want := "the server a has the value of X-Api-Key; the server b has the value of DB, TOKEN"; strings.Join(got, "; ") != want {
		t.Errorf("the notes are %q, want %q", got, want)
	}
}

// The import adds to belay.yaml and mcp.json, and keeps what is in them.
func TestAnImportKeepsWhatIsInAFile(t *testing.T) { // SPEC B-07
	t.Parallel()
	for name, c := range map[string]struct{ before, want, note string }{
		"no permit":     {"# mine\nmode: standard\n", "# mine\nmode: standard\n\npermit:\n  rules:\n    - \"deny shell(rm)\"\n", ""},
		"other rules":   {"permit:\n  # keep\n  rules:\n    - ask shell(ls)\nmode: standard\n", "  # keep\n  rules:\n    - \"deny shell(rm)\"\n    - ask shell(ls)\n", ""},
		"only guards":   {"permit:\n    guards:\n        - {id: a, deny: b}\n", "permit:\n    rules:\n      - \"deny shell(rm)\"\n", ""},
		"in one line":   {"permit: {rules: [ask shell(ls)]}\n", "", "not written: its key permit has a form"},
		"rules in line": {"permit:\n  rules: [ask shell(ls)]\n", "", "not written: its key permit has a form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t, map[string]string{"belay.yaml": c.before, ".cursor/cli.json": `{"permissions":{"deny":["Shell(rm)"]}}`})
			plan, err := convert.New(t.Context(), s, &convert.Options{Agent: dialect.Cursor})
			if err != nil {
				t.Fatal(err)
			}
			after, notes := "", ""
			for _, f := range plan.Files {
				after += string(f.After)
				if f.Replaces {
					t.Errorf("%s would be replaced", f.Path)
				}
			}
			for _, n := range plan.Notes {
				notes += n.Message
			}
			if !strings.Contains(after, c.want) || !strings.Contains(notes, c.note) || (c.want == "") != (after == "") {
				t.Errorf("belay.yaml becomes\n%s\nnotes: %s", after, notes)
			}
			for line := range strings.Lines(c.before) {
				if after != "" && !strings.Contains(after, line) {
					t.Errorf("the line %q is lost:\n%s", line, after)
				}
			}
		})
	}
}

// A project cannot make an import copy a file from elsewhere.
func TestAnImportFollowsNoLinkOutOfTheProject(t *testing.T) { // SPEC B-07
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(secret, []byte("the secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := setup(t, map[string]string{".claude/settings.json": "{}"})
	if err := os.Symlink(secret, filepath.Join(s.Project, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	plan, err := convert.New(t.Context(), s, &convert.Options{Agent: dialect.ClaudeCode})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.Files {
		if strings.Contains(string(f.After), "the secret") {
			t.Errorf("%s has the text of another file", f.Path)
		}
	}
	if len(plan.Notes) == 0 {
		t.Error("no note says that the link was not followed")
	}
}
