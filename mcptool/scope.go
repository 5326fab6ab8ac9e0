package mcptool

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Prompt returns a line for the prompt with the servers that the agent may use.
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

// Narrow restricts an agent to the servers and tools in allowed. The name of a server
// means all its tools. Any other entry is the name of a tool or a pattern for
// [path.Match].
func (e *Extension) Narrow(_ belay.AgentConfig, allowed []string) (tools []string, line string) {
	if len(allowed) == 0 {
		return nil, "You must not use any MCP server."
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.patterns(allowed), "You may only use these MCP servers: " + strings.Join(allowed, ", ") + "."
}

// patterns replaces each name of a server by a pattern for its tools. The caller holds
// e.mu.
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
