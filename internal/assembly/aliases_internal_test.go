package assembly

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/mcptool"
	"github.com/belay-run/belay/permit"
)

// A rule of Claude Code about a tool of a server fits every name that Belay gives to the
// tool, and an allow rule only its own.
func TestARuleOfClaudeCodeFitsEveryNameOfAServersTool(t *testing.T) { // SPEC B-03, B-04
	t.Parallel()
	for name, c := range map[string]struct {
		kind, rule   string
		server, tool string
		want         belay.ToolDecision
	}{
		"an underscore":                      {"deny", "mcp__my_server__drop", "my_server", "drop", belay.ToolDeny},
		"a dot, which Claude Code replaces":  {"deny", "mcp__my_server__drop", "my.server", "drop", belay.ToolDeny},
		"a blank":                            {"deny", "mcp__my_server__drop", "my server", "drop", belay.ToolDeny},
		"a dot in the tool":                  {"deny", "mcp__db__table_drop", "db", "table.drop", belay.ToolDeny},
		"two underscores in the server":      {"deny", "mcp__my__server__drop", "my__server", "drop", belay.ToolDeny},
		"all tools of such a server":         {"deny", "mcp__my__server", "my__server", "drop", belay.ToolDeny},
		"all tools, with a pattern":          {"deny", "mcp__my_server__*", "my.server", "drop", belay.ToolDeny},
		"a server of the project's own file": {"deny", "mcp__wiki__drop", "project-wiki", "drop", belay.ToolDeny},
		"a server of a plugin":               {"deny", "mcp__plugin_acme_db__drop", "acme-db", "drop", belay.ToolDeny},
		"a question":                         {"ask", "mcp__my_server__drop", "my.server", "drop", belay.ToolAsk},
		"another server":                     {"deny", "mcp__my_server__drop", "zebra", "list", belay.ToolPass},
		"another tool":                       {"deny", "mcp__my_server__drop", "my_server", "look_up", belay.ToolPass},
		"allow fits only the same name":      {"allow", "mcp__my_server__drop", "my_server", "drop", belay.ToolPass},
		"allow does not fit another server":  {"allow", "mcp__wiki__drop", "project-wiki", "drop", belay.ToolAsk},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data, err := json.Marshal(map[string]any{"permissions": map[string]any{c.kind: []string{c.rule}}})
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "settings.json")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := claude.ReadSettings(file)
			if err != nil {
				t.Fatal(err)
			}
			o := &permit.Options{Rules: s.Permissions(&claude.PermissionOptions{Project: dir, Own: true, Shown: "settings.json"}).Rules, Aliases: toolAliases}
			tool := mcptool.ToolName(c.server, c.tool)
			if c.kind == "deny" { // without the rule, the call passes
				o.Tools = map[string]permit.Profile{tool: {Zone: 1}}
			}
			floor, err := permit.New(dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if e := floor.Explain(t.Context(), tool, json.RawMessage(`{}`)); e.Decision != c.want {
				t.Errorf("%s on %s decides %q, want %q", c.rule, tool, e.Decision, c.want)
			}
		})
	}
}
