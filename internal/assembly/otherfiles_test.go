package assembly_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/assembly"
	"github.com/belay-run/belay/internal/config"
)

// Every kind of file of another coding agent is named, with what becomes of it. If the kind is
// switched off, that is said.
//
// SPEC B-04, W-04
func TestEveryFileOfOtherAgentsIsNamed(t *testing.T) {
	t.Parallel()
	market := map[string]string{"market/.claude-plugin/marketplace.json": `{"plugins": [{"name": "p", "source": "./p"}]}`, "market/p/commands/a.md": "A"}
	for _, test := range []struct {
		kind, file, text string
		more             map[string]string
		want             string
	}{
		{"instructions", "AGENTS.md", "Use tabs.", nil, "AGENTS.md: instructions for the model"},
		{"instructions", "CLAUDE.md", "Use tabs.", nil, "CLAUDE.md: instructions for the model"},
		{"instructions", "GEMINI.md", "Use tabs.", nil, "GEMINI.md: instructions for the model"},
		{"instructions", "CLAUDE.local.md", "", nil, "CLAUDE.local.md: adds no text of its own"},
		{"instructions", ".claude/rules/a.md", "---\npaths: x\n---\nA", nil, ".claude/rules/a.md: left out"},
		{"instructions", "home/.claude/CLAUDE.md", "Use tabs.", nil, "home/.claude/CLAUDE.md: instructions for the model"},
		{"commands", ".claude/commands/a.md", "A", nil, ".claude/commands: 1 command, typed as /name"},
		{"commands", ".claude/commands/b.md", "---\nx", nil, ".claude/commands/b.md: not used: line 1: the frontmatter that begins here is never closed"},
		{"commands", "home/.claude/commands/a.md", "A", nil, "home/.claude/commands: 1 command"},
		{"skills", ".claude/skills/a/SKILL.md", "---\nname: a\ndescription: x\n---\nA", nil, ".claude/skills: 1 skill"},
		{"agents", ".claude/agents/a.md", "---\nname: a\n---\nA", nil, ".claude/agents/a.md: agent a"},
		{"agents", ".claude/agents/deep/README.md", "Read me", nil, ".claude/agents/deep/README.md: not used: it is no agent"},
		{"permissions", ".claude/settings.json", `{"permissions": {"deny": ["Bash(rm:*)"]}}`, nil, ".claude/settings.json: permissions: 2 rules of the floor"},
		{"permissions", ".claude/settings.local.json", `{"permissions": {"allow": ["Bash(ls:*)"]}}`, nil, ".claude/settings.local.json: its allow rules (1) have no effect"},
		{"permissions", ".claude/settings.local.json", `{"permissions": {"deny": ["TodoRead"], "defaultMode": "plan"}}`, nil, "deny TodoRead: Belay has no such tool, so the rule has no effect; defaultMode plan has no effect"},
		{"", ".claude/settings.json", `{`, nil, ".claude/settings.json: not used: it is no JSON object"},
		{"", ".claude/settings.json", `{"model": "x"}`, nil, ".claude/settings.json: Belay ignores model"},
		{"mcp", ".mcp.json", `{"a": {"command": "x"}}`, nil, ".mcp.json: 1 MCP server, which starts after `belay trust .mcp.json`"},
		{"mcp", ".mcp.json", `[]`, nil, ".mcp.json: not used: it is no JSON object"},
		{"plugins", ".claude/settings.json", `{"enabledPlugins": {"gone@x": true}}`, nil, "plugin gone@x: not used: it is not installed"},
		{"plugins", ".claude/settings.json", `{"enabledPlugins": {"p@m": true}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "market"}}}}`, market, "market/p: plugin p, 1 command"},
		{"", ".claude-plugin/plugin.json", `{"name": "p"}`, nil, ".claude-plugin/plugin.json: a plugin that no settings switch on"},
		{"", ".claude-plugin/marketplace.json", `{"plugins": []}`, nil, ".claude-plugin/marketplace.json: a marketplace with 0 plugins"},
		{"", ".claude-plugin/marketplace.json", `{"plugins": [{"name": "p", "source": "./p", "commands": "./more"}, {"name": "q", "source": "../q"}]}`, map[string]string{"p/more/a.md": "A"}, "p: plugin p, which no settings switch on, 1 command"},
		{"", ".claude-plugin/marketplace.json", `{"plugins": [{"name": "q", "source": "../q"}]}`, nil, `plugins[0].source: plugin q: "../q" leads out of the marketplace, so it is not used`},
		{"plugins", ".claude/settings.json", `{"enabledPlugins": {"q@m": true}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "."}}}}`, map[string]string{".claude-plugin/marketplace.json": `{"plugins": [{"name": "q", "source": "../q"}]}`}, `plugin q@m: not used: marketplace.json of m: plugins[0].source: plugin q: "../q" leads out`},
		{"agents", ".claude/agents/a.md", "---\nname: a\nhooks:\n  Stop: []\n---\nA", nil, ".claude/agents/a.md: agent a"},
		{"agents", ".claude/agents/a.md", "---\nname: a\nhooks:\n  Stop: [{hooks: [{type: command, command: x}]}]\n---\nA", nil, ".claude/agents/a.md: not used: hooks: 1 hook of agent"},
		{"", ".claude/output-styles/a.md", "A", nil, ".claude: Belay does not use output-styles"},
		{"", ".claude/status.sh", "A", nil, ".claude: Belay does not read status.sh"},
		{"", ".claude/hooks/hooks.json", "{}", nil, ".claude/hooks/hooks.json: not used: Claude Code reads such a file only in a plugin"},
		{"", ".claude/commands/deep/a.toml", "A", nil, ".claude/commands: not read, because their names do not end in .md: deep/a.toml"},
		{"", ".cursor/hooks.json", "{}", nil, ".cursor/hooks.json: Belay does not read it, and it may have hooks that block: `belay import --agent cursor` says"},
		{"", ".codex/config.toml", "", nil, ".codex/config.toml: Belay does not read it: `belay import --agent codex` says"},
		{"", ".windsurfrules", "", nil, ".windsurfrules: Belay does not read it"},
	} {
		t.Run(test.file+" "+test.want, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{test.file: test.text}
			maps.Copy(files, test.more)
			for name, text := range files {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := config.Load(&config.Options{Dir: dir, UserDir: filepath.Join(dir, "user"), SystemDir: filepath.Join(dir, "system"), Environ: []string{"HOME=" + filepath.Join(dir, "home")}})
			if err != nil {
				t.Fatal(err)
			}
			named := func() string {
				var lines []string
				for _, f := range assembly.New(nil).OtherFiles(t.Context(), s) {
					lines = append(lines, f.String())
				}
				return strings.Join(lines, "\n")
			}
			if said := named(); !strings.Contains(said, test.want) {
				t.Errorf("the files are\n%s\nwant %q", said, test.want)
			}
			if test.kind == "" {
				return
			}
			s.OtherAgents.Ignore = []string{test.kind}
			if said := named(); !strings.Contains(said, `other_agents.ignore has "`+test.kind+`" or all`) {
				t.Errorf("with the kind switched off, the files are\n%s", said)
			}
		})
	}
}
