package assembly

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect/guard"
	"github.com/belay-run/belay/internal/config"
)

// guardServers returns the MCP servers that Cursor has here, and the names of servers in
// rules, guards and hooks: a rule about one of them must not be missed.
func guardServers(s *config.Loaded, p *Places, rules []string) []guard.Server {
	var all []guard.Server
	for _, dir := range []string{s.Project, homeOf(s)} {
		text, err := readRegular(filepath.Join(dir, ".cursor", "mcp.json"))
		if dir == "" || err != nil {
			continue
		}
		var file struct {
			Servers map[string]struct {
				Command string   `json:"command"`
				Args    []string `json:"args"`
				URL     string   `json:"url"`
			} `json:"mcpServers"` //nolint:tagliatelle // the file's name
		}
		if json.Unmarshal(text, &file) != nil {
			continue
		}
		for name, one := range file.Servers {
			all = append(all, guard.Server{Name: name, URL: one.URL, Command: strings.Join(append([]string{one.Command}, one.Args...), " ")})
		}
	}
	const pattern = `*?[\`
	add := func(tool string) {
		server, name, ok := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
		if !ok || server == "" || strings.ContainsAny(server, pattern) {
			return
		}
		at := slices.IndexFunc(all, func(o guard.Server) bool { return o.Name == server })
		if at < 0 {
			at, all = len(all), append(all, guard.Server{Name: server})
		}
		if name != "" && !strings.ContainsAny(name, pattern) && !slices.Contains(all[at].Tools, name) {
			all[at].Tools = append(all[at].Tools, name)
		}
	}
	for _, tool := range rules {
		add(tool)
	}
	for _, place := range p.All {
		for _, d := range place.Hooks {
			for _, tool := range d.Options.Match.Tools {
				add(tool)
			}
		}
	}
	slices.SortFunc(all, func(a, b guard.Server) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ruleTools returns the tools in rules and guards of the settings, and in permissions of
// Claude Code.
func ruleTools(s *config.Loaded, others []string) []string {
	tools := slices.Clone(others)
	for i := range s.Permit.Rules {
		tools = append(tools, s.Permit.Rules[i].Tool)
	}
	for i := range s.Permit.Guards {
		tools = append(tools, s.Permit.Guards[i].Tools...)
	}
	return tools
}
