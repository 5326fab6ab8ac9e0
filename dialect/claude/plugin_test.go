package claude_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/dialect/claude"
)

func variables(name string) (string, bool) {
	value, ok := map[string]string{"HOST": "example.com", "TOKEN": "secret"}[name]
	return value, ok
}

// SPEC B-04
func TestServersInBothForms(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		text, want string
		note       string
	}{
		"with mcpServers":                       {`{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x"]}}}`, "a npx -y,x", ""},
		"without mcpServers":                    {`{"a": {"type": "stdio", "command": "npx"}}`, "a npx ", ""},
		"a variable":                            {`{"a": {"type": "http", "url": "https://${HOST}/mcp"}}`, "a https://example.com/mcp", ""},
		"a variable with a default":             {`{"a": {"command": "${RUNNER:-npx}"}}`, "a npx ", ""},
		"a secret stays a variable":             {`{"a": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}`, "a https://x.example/mcp Bearer ${TOKEN}", ""},
		"a variable that is not set":            {`{"a": {"command": "${GONE}"}}`, "", "the environment variable GONE is not set"},
		"a type that is not supported":          {`{"a": {"type": "sse", "url": "https://x.example/sse"}}`, "", "server a is not used: type: Belay does not support the type sse"},
		"a limit that is not known":             {`{"a": {"command": "x", "disabledTools": ["y"]}}`, "", "its limit disabledTools is not known to Belay"},
		"an unknown key":                        {`{"a": {"command": "x", "timeout": 5}}`, "a x ", "server a: Belay ignores the key timeout"},
		"another server with a mistake":         {`{"mcpServers": {"a": {"command": "x"}, "b": 1}}`, "a x ", "server b is not used: it is no object"},
		"an unknown key besides the servers":    {`{"mcpServers": {"a": {"command": "x"}}, "inputs": []}`, "a x ", "Belay ignores the key inputs"},
		"a program beside the file is absolute": {`{"a": {"command": "./run.sh"}}`, "a DIR/run.sh ", ""},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{".mcp.json": test.text, "run.sh": ""})
			read, err := claude.ReadServers(filepath.Join(dir, ".mcp.json"), variables)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range read.Servers {
				s := &read.Servers[i]
				if s.URL != "" {
					got = append(got, strings.TrimSpace(s.Name+" "+s.URL+" "+s.Headers["Authorization"]))
				} else {
					got = append(got, s.Name+" "+s.Command+" "+strings.Join(s.Args, ","))
				}
			}
			if said := strings.ReplaceAll(strings.Join(got, "\n"), dir, "DIR"); said != test.want {
				t.Errorf("the servers are %q, want %q; notes %v", said, test.want, read.Notes)
			}
			if notes := strings.Join(read.Notes, "; "); !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, test.note)
			}
			if strings.Contains(test.want, "DIR") && !slices.Equal(read.Programs, []string{filepath.Join(dir, "run.sh")}) {
				t.Errorf("the programs are %v", read.Programs)
			}
		})
	}
}

// SPEC B-04
func TestPluginsAreFoundAndRead(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"market/.claude-plugin/marketplace.json":         `{"name": "m", "plugins": [{"name": "acme", "source": "./plugins/acme"}, {"name": "far", "source": {"source": "github", "repo": "x/y"}}, {"name": "out", "source": "../../home"}]}`,
		"market/plugins/acme/.claude-plugin/plugin.json": `{"name": "acme", "commands": "./more", "agents": ["./gone"], "mcpServers": {"s": {"command": "${CLAUDE_PLUGIN_ROOT}/run"}}}`,
		"market/plugins/acme/commands/a.md":              "A",
		"market/plugins/acme/more/b.md":                  "B",
		"market/plugins/acme/skills/tidy/SKILL.md":       "---\nname: tidy\ndescription: x\n---\nTidy.",
		"market/plugins/acme/run":                        "",
		"home/plugins/installed_plugins.json":            `{"version": 2, "plugins": {"old@x": [{"installPath": "DIR/market/plugins/acme"}]}}`,
		"home/plugins/known_marketplaces.json":           `{"known": {"installLocation": "DIR/market"}}`,
		"settings.json":                                  `{"enabledPlugins": {"acme@m": true, "off@m": false}, "extraKnownMarketplaces": {"m": {"source": {"source": "directory", "path": "market"}}, "g": {"source": {"source": "github", "repo": "x/y"}}}}`,
	})
	s, err := claude.ReadSettings(filepath.Join(dir, "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	if ids := claude.Enabled(s); !slices.Equal(ids, []string{"acme@m"}) || s.Marketplaces["m"] != "market" || len(s.Notes) != 1 {
		t.Errorf("enabled %v, marketplaces %v, notes %v", ids, s.Marketplaces, s.Notes)
	}
	from, err := claude.FindPlugin("acme@m", "", map[string]string{"m": filepath.Join(dir, "market")})
	if err != nil {
		t.Fatal(err)
	}
	root := from.Root
	p, err := claude.ReadPlugin(from, variables)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "acme" || len(p.Commands) != 2 || len(p.Skills) != 1 || len(p.Agents) != 0 || len(p.Servers.Servers) != 1 || len(p.Notes) != 1 {
		t.Errorf("the plugin is %+v", p)
	}
	if s := p.Servers.Servers[0]; s.Name != "acme-s" || s.Command != filepath.Join(root, "run") {
		t.Errorf("the server is %+v", s)
	}
	if _, err := claude.FindPlugin("far@m", "", map[string]string{"m": filepath.Join(dir, "market")}); err == nil {
		t.Error("a plugin that must be downloaded was found")
	}
	if _, err := claude.FindPlugin("out@m", "", map[string]string{"m": filepath.Join(dir, "market")}); err == nil {
		t.Error("a plugin outside of its marketplace was found")
	}
	home := write(t, map[string]string{
		"plugins/installed_plugins.json":  strings.ReplaceAll(`{"version": 2, "plugins": {"old@x": [{"installPath": "DIR/market/plugins/acme"}]}}`, "DIR", dir),
		"plugins/known_marketplaces.json": strings.ReplaceAll(`{"known": {"installLocation": "DIR/market"}}`, "DIR", dir),
	})
	for _, id := range []string{"old@x", "acme@known"} {
		if found, err := claude.FindPlugin(id, home, nil); err != nil || found.Root != root {
			t.Errorf("%s is in %q, %v; want %q", id, found, err, root)
		}
	}
}

// Nothing of a plugin is left out in silence, and its hooks are found where its manifest says.
//
// SPEC B-01, B-04
func TestPartsOfAPluginAreFoundOrNamed(t *testing.T) {
	t.Parallel()
	for rule, test := range map[string]struct {
		manifest string
		files    []string // besides the manifest
		hooks    []string
		note     string
	}{
		"the usual file":            {`{"name": "p"}`, []string{"hooks/hooks.json"}, []string{"hooks/hooks.json"}, ""},
		"the usual file is named":   {`{"name": "p", "hooks": "./hooks/hooks.json"}`, []string{"hooks/hooks.json"}, []string{"hooks/hooks.json"}, ""},
		"another file":              {`{"name": "p", "hooks": "./more.json"}`, []string{"hooks/hooks.json", "more.json"}, []string{"hooks/hooks.json", "more.json"}, ""},
		"several files":             {`{"name": "p", "hooks": ["./a.json", "./b.json"]}`, []string{"a.json", "b.json"}, []string{"a.json", "b.json"}, ""},
		"in the manifest":           {`{"name": "p", "hooks": {"Stop": []}}`, nil, []string{".claude-plugin/plugin.json"}, ""},
		"a file that is not there":  {`{"name": "p", "hooks": "./gone.json"}`, nil, nil, "./gone.json does not exist"},
		"a file outside":            {`{"name": "p", "hooks": "../out.json"}`, []string{"../out.json"}, nil, "../out.json is outside of the plugin"},
		"hooks as a number":         {`{"name": "p", "hooks": 7}`, nil, nil, "hooks is neither a path nor an object"},
		"parts that Belay has not":  {`{"name": "p", "lspServers": {}, "userConfig": {}}`, nil, nil, "Belay does not use lspServers, userConfig"},
		"commands beside the parts": {`{"name": "p", "commands": ["./x.md"]}`, []string{"x.md"}, nil, "commands: ./x.md is not used: move it into a directory"},
		"a skill beside the parts":  {`{"name": "p"}`, []string{"SKILL.md"}, nil, "SKILL.md is not used"},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"p/.claude-plugin/plugin.json": test.manifest}
			for _, name := range test.files {
				files[filepath.Join("p", filepath.FromSlash(name))] = "{}"
			}
			p, err := claude.ReadPlugin(&claude.PluginSource{Root: filepath.Join(write(t, files), "p"), Name: "p"}, variables)
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(p.Notes, "; "); !slices.Equal(p.HookFiles, test.hooks) || !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("hooks in %q, want %q; notes %q, want %q", p.HookFiles, test.hooks, notes, test.note)
			}
		})
	}
}
