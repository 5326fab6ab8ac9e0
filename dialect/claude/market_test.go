package claude_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect/claude"
)

// market writes a marketplace with one entry, and the files of its plugin p.
func market(t *testing.T, entry string, files map[string]string) string {
	t.Helper()
	all := map[string]string{".claude-plugin/marketplace.json": "{\"plugins\": [\n  {\"name\": \"first\", \"source\": {\"source\": \"github\", \"repo\": \"x/y\"}},\n  " + entry + "\n]}"}
	for name, text := range files {
		all["p/"+name] = text
	}
	return write(t, all)
}

// The entry of a marketplace declares parts of a plugin: it adds to the plugin's manifest, or,
// with "strict": false, it is all that does.
//
// SPEC B-04
func TestEntriesOfMarketplacesDeclareParts(t *testing.T) {
	t.Parallel()
	skill := "---\nname: tidy\ndescription: x\n---\nTidy."
	files := map[string]string{
		"commands/a.md": "A", "more/b.md": "B", "more/c.md": "C", "agents/d.md": "D", "skills/one/SKILL.md": skill, "skills/two/SKILL.md": skill, "hooks/hooks.json": "{}", "other.json": "{}",
		".mcp.json": `{"own": {"command": "x"}}`,
	}
	for rule, c := range map[string]struct {
		entry    string // without its name and source
		manifest string
		want     string
		note     string
	}{
		"nothing is declared":          {``, ``, "commands agents skills hooks/hooks.json p-own", ""},
		"nothing, and not strict":      {`"strict": false`, `{"name": "p"}`, "commands agents skills hooks/hooks.json p-own", ""},
		"an entry adds":                {`"commands": ["./more"], "hooks": "./other.json", "mcpServers": {"s": {"command": "y"}}`, `{"name": "p"}`, "commands more agents skills hooks/hooks.json other.json p-s p-own", ""},
		"an entry is all":              {`"strict": false, "commands": "./more", "skills": [], "hooks": "./other.json", "mcpServers": {"s": {"command": "y"}}`, ``, "more agents other.json p-s", ""},
		"an entry names files":         {`"strict": false, "commands": ["./more/b.md"], "skills": ["./skills/two"]`, ``, "more:b.md agents skills:two hooks/hooks.json p-own", ""},
		"a file of a named directory":  {`"commands": ["./more/b.md", "./more"]`, ``, "commands more agents skills hooks/hooks.json p-own", ""},
		"hooks in the entry":           {`"strict": false, "hooks": {"Stop": []}`, ``, "commands agents skills inside p-own", ""},
		"both declare parts":           {`"strict": false, "commands": "./more"`, `{"commands": "./commands"}`, "", `both declare parts`},
		"a path that leads out":        {`"commands": ["../q"], "hooks": "../q/h.json", "agents": "../q/q.md"`, ``, "commands agents skills hooks/hooks.json p-own", "marketplace.json: commands: ../q is outside of the plugin; marketplace.json: agents: ../q/q.md is outside of the plugin; marketplace.json: hooks: ../q/h.json is outside of the plugin, so its hooks do not run"},
		"servers in another directory": {`"mcpServers": "../q/mcp.json"`, ``, "commands agents skills hooks/hooks.json p-own", "marketplace.json: mcpServers names a file in another directory"},
		"wrong types":                  {`"commands": 7, "hooks": 7, "mcpServers": 7`, ``, "commands agents skills hooks/hooks.json p-own", "marketplace.json: commands is neither a path nor a list of paths; marketplace.json: hooks is neither a path nor an object with events, so its hooks do not run; marketplace.json: mcpServers is neither a path nor an object"},
		"parts that Belay has not":     {`"lspServers": {}`, ``, "commands agents skills hooks/hooks.json p-own", "marketplace.json: Belay does not use lspServers of its entry"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			entry := `{"name": "p", "source": "./p"`
			if c.entry != "" {
				entry += ", " + c.entry
			}
			all := map[string]string{"../q/q.md": "Q", "../q/h.json": "{}", "../q/mcp.json": "{}"}
			maps.Copy(all, files)
			if c.manifest != "" {
				all[".claude-plugin/plugin.json"] = c.manifest
			}
			dir := market(t, entry+"}", all)
			from, err := claude.FindPlugin("p@m", "", map[string]string{"m": dir})
			if err != nil {
				t.Fatal(err)
			}
			p, err := claude.ReadPlugin(from, variables)
			if err != nil {
				if c.want != "" || !strings.Contains(err.Error(), c.note) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if got := partsOf(p); got != c.want {
				t.Errorf("the parts are %q, want %q", got, c.want)
			}
			if notes := strings.Join(p.Notes, "; "); !strings.HasPrefix(notes, c.note) || c.note == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, c.note)
			}
			if file := filepath.Join(dir, ".claude-plugin", "marketplace.json"); slices.Contains(p.Servers.Programs, file) != strings.Contains(c.want, "p-s ") && slices.Contains(p.Servers.Programs, file) != strings.HasSuffix(c.want, "p-s") {
				t.Errorf("trust covers %q", p.Servers.Programs)
			}
		})
	}
}

// partsOf lists the parts of a plugin.
func partsOf(p *claude.Plugin) string {
	var all []string
	for part, dirs := range map[string][]string{"1commands": p.Commands, "2agents": p.Agents, "3skills": p.Skills} {
		for _, dir := range dirs {
			word := part[:1] + filepath.Base(dir)
			for _, one := range p.Singles(part[1:], dir) {
				word += ":" + filepath.Base(one)
				if !p.Has(part[1:], dir, one) || p.Has(part[1:], dir, filepath.Join(dir, "other")) {
					word += "!"
				}
			}
			all = append(all, word)
		}
	}
	slices.Sort(all)
	for i := range all {
		all[i] = all[i][1:]
	}
	all = append(all, p.HookFiles...)
	if p.EntryHooks {
		all = append(all, "inside")
	}
	for i := range p.Servers.Servers {
		all = append(all, p.Servers.Servers[i].Name)
	}
	return strings.Join(all, " ")
}

// A source of a plugin never leads out of its marketplace. The note names the field.
//
// SPEC B-04
func TestSourcesThatLeadOutAreRefused(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for source, want := range map[string]string{
		`"../q"`: "leads out of the marketplace", `"./p/../../q"`: "leads out of the marketplace", `".."`: "leads out of the marketplace", `"./link"`: "leads out of the marketplace", `"./link/deep"`: "leads out of the marketplace",
		fmt.Sprintf("%q", filepath.ToSlash(outside)): "is an absolute path", `"/etc"`: "is an absolute path", `"./gone"`: "is no directory in the marketplace", `"./p/commands/a.md"`: "is no directory in the marketplace",
		`{"source": "git", "url": "https://example.com/x.git"}`: "Belay downloads nothing", `7`: "Belay downloads nothing",
	} {
		dir := market(t, `{"name": "p", "source": `+source+`, "hooks": {"Stop": []}}`, map[string]string{"commands/a.md": "A"})
		if err := os.MkdirAll(filepath.Join(outside, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		plugins, notes, err := claude.Marketplace(dir)
		if err != nil || len(plugins) != 0 || len(notes) != 2 || !strings.Contains(notes[1], want) || !strings.Contains(want, "downloads") && !strings.HasPrefix(notes[1], "plugins[1].source: plugin p: ") {
			t.Errorf("%s: %v, %v, notes %q, want %q", source, plugins, err, notes, want)
		}
		if _, err := claude.FindPlugin("p@m", "", map[string]string{"m": dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", source, err, want)
		}
	}
	for root, want := range map[string]int{"./plugins": 1, "..": 0, "/": 0} { // pluginRoot is as harmless
		dir := write(t, map[string]string{"m/.claude-plugin/marketplace.json": fmt.Sprintf(`{"metadata": {"pluginRoot": %q}, "plugins": [{"name": "p", "source": "q"}]}`, root), "m/plugins/q/a": "", "q/a": ""})
		if plugins, notes, err := claude.Marketplace(filepath.Join(dir, "m")); err != nil || len(plugins) != want || len(notes) != 1-want {
			t.Errorf("pluginRoot %s: %v, %q, %v", root, plugins, notes, err)
		}
	}
}

// The hooks of an entry have the lines of the marketplace's file.
func TestAnEntryKeepsItsLines(t *testing.T) {
	t.Parallel()
	dir := market(t, `{"name": "p", "source": "./p"}`, map[string]string{"commands/a.md": "A"})
	plugins, _, err := claude.Marketplace(filepath.Join(dir, ".claude-plugin", "marketplace.json"))
	if err != nil || string(plugins["p"].Entry) != "\n\n"+`{"name": "p", "source": "./p"}` {
		t.Errorf("%v, %q", err, plugins["p"].Entry)
	}
}
