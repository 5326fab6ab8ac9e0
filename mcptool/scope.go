package mcptool

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Prompt lists the servers that an agent may use.
func (e *Extension) Prompt(agent belay.AgentConfig) (fragment, resources string) {
	allowed, restricted := agent.Resources[e.Name()]
	e.mu.Lock()
	defer e.mu.Unlock()
	var names []string
	for _, m := range e.mounts {
		if m.link != nil && (!restricted || slices.ContainsFunc(e.patterns(allowed), func(pattern string) bool { return reaches(pattern, m.server.Name) })) {
			names = append(names, m.server.Name)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	return "", "MCP servers: " + strings.Join(names, ", ") + ". The tools of a server are named " + ToolName("SERVER", "TOOL") + "."
}

// Narrow restricts an agent to some of the servers, or some of their tools. The name of a
// server means all its tools. Other names are names of tools, or patterns of
// [path.Match].
func (e *Extension) Narrow(_ belay.AgentConfig, allowed []string) (tools []string, line string) {
	if len(allowed) == 0 {
		return nil, "You must not use any MCP server."
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.patterns(allowed), "You may only use these MCP servers: " + strings.Join(allowed, ", ") + "."
}

// patterns returns the patterns of the tools that names stand for.
func (e *Extension) patterns(allowed []string) []string {
	patterns := make([]string, len(allowed))
	for i, name := range allowed {
		patterns[i] = name
		if slices.ContainsFunc(e.mounts, func(m *mount) bool { return m.server.Name == name }) {
			patterns[i] = front(name) + "*"
		}
	}
	return patterns
}

// reaches reports whether a pattern may match a tool of a server.
func reaches(pattern, server string) bool {
	own, _, _ := strings.Cut(front(server), separator)
	begins, _, _ := strings.Cut(pattern, separator)
	ok, err := path.Match(begins, own)
	return ok && err == nil
}
