package assembly

import (
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/mcptool"
)

// toolAliases returns the names that other agents give to a tool of an MCP server.
func toolAliases(tool string) []string {
	server, name, ok := mcptool.SplitName(tool)
	if !ok { // a name that another agent made
		if server, name, ok = strings.Cut(tool, "__"); !ok {
			return nil
		}
	}
	return dialect.ServerAliases(server, name)
}
