package guard

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// Server is an MCP server that another agent may have. Cursor does not write the name of the
// server, but its address or its command.
type Server struct {
	Name, URL, Command string
}

// server is what an event says about the MCP server of a call.
type server struct {
	tool         string // the name of the tool, if the event does not name the server
	name         string // the name of the server, if the event has it apart from the tool
	url, command string
}

// nameless is the server of a call if nothing is known about it.
const nameless = "cursor"

// guess replaces the call of an MCP server's tool by all calls that it can mean. The most
// severe answer counts, so that a rule about one of them is never missed.
func (e *Engine) guess(ev *event) {
	if len(ev.calls) != 1 || ev.phase != belay.ToolPre.Name() {
		return
	}
	var tools []string
	switch {
	case ev.server.name != "" && ev.server.tool != "":
		tools = []string{ev.server.name + "__" + ev.server.tool}
	case ev.server.tool != "":
		tools = ev.agent.ServerTools("MCP:"+ev.server.tool, e.names(ev))
	default:
		tools = ev.agent.ServerTools(ev.call.Tool, nil)
	}
	if len(tools) == 0 {
		return
	}
	call := ev.calls[0]
	ev.guessed = len(tools) > 1
	ev.calls = nil
	for _, tool := range tools {
		ev.calls = append(ev.calls, dialect.Call{Tool: tool, Input: call.Input})
	}
}

// names returns the names that the server of a call can have.
func (e *Engine) names(ev *event) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, s := range e.Servers {
		if ev.server.url != "" && s.URL == ev.server.url || ev.server.command != "" && s.Command == strings.Join(strings.Fields(ev.server.command), " ") {
			return []string{s.Name}
		}
		add(s.Name)
	}
	add(nameless)
	return names
}
