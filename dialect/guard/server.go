package guard

import (
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/dialect"
)

// Server is an MCP server that another agent may have. Cursor does not write the name of the
// server, but its address or its command.
type Server struct {
	Name, URL, Command string
	// Tools are tools of the server that rules and hooks name.
	Tools []string
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
// severe answer counts, so that a rule about one of them is never missed. After a call, only
// the meanings that rules and hooks name count. An error means that there are too many.
func (e *Engine) guess(ev *event) error {
	if len(ev.calls) != 1 {
		return nil
	}
	call := ev.calls[0]
	written := e.written(ev)
	if len(written) >= dialect.MostMeanings {
		return fmt.Errorf("the name of the tool %s can mean too many tools of MCP servers", ev.call.Tool)
	}
	if len(written) == 0 && strings.Contains(call.Tool, "__") {
		written = []string{call.Tool}
	}
	tools := e.named(written)
	if ev.phase == belay.ToolPre.Name() || len(tools) == 0 && len(written) == 1 {
		tools = slices.Concat(written, slices.DeleteFunc(tools, func(tool string) bool { return slices.Contains(written, tool) }))
	}
	if len(tools) == 0 {
		return nil
	}
	ev.guessed = len(tools) > 1
	ev.calls = nil
	for _, tool := range tools {
		ev.calls = append(ev.calls, dialect.Call{Tool: tool, Input: call.Input})
	}
	return nil
}

// named returns the tools that a call can mean and that rules and hooks may name.
func (e *Engine) named(written []string) []string {
	var tools []string
	add := func(tool string) {
		if !slices.Contains(tools, tool) {
			tools = append(tools, tool)
		}
	}
	for _, one := range written {
		server, tool, _ := strings.Cut(one, "__")
		for _, s := range e.Servers {
			if !dialect.MayMean(server, s.Name) {
				continue
			}
			add(s.Name + "__" + tool)
			for _, known := range s.Tools {
				if dialect.MayMean(tool, known) {
					add(s.Name + "__" + known)
				}
			}
		}
	}
	return tools
}

// written returns the calls that an agent can mean by what it writes, or none if the call is
// no tool of a server.
func (e *Engine) written(ev *event) []string {
	switch {
	case ev.server.name != "" && ev.server.tool != "":
		return []string{ev.server.name + "__" + ev.server.tool}
	case ev.server.tool != "":
		return ev.agent.ServerTools("MCP:"+ev.server.tool, e.names(ev))
	}
	var servers []string
	for _, s := range e.Servers {
		servers = append(servers, s.Name)
	}
	return ev.agent.ServerTools(ev.call.Tool, servers)
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
