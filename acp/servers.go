package acp

import (
	"fmt"
	"os"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/belay-run/belay/mcptool"
)

// serversOf translates the MCP servers that an editor passes along.
func serversOf(given []sdk.McpServer) ([]mcptool.Server, error) {
	var all []mcptool.Server
	for i := range given {
		switch g := &given[i]; {
		case g.Stdio != nil:
			server := mcptool.Server{Name: g.Stdio.Name, Command: g.Stdio.Command, Args: g.Stdio.Args}
			values := make([]value, len(g.Stdio.Env))
			for i, v := range g.Stdio.Env {
				values[i] = value{v.Name, v.Value}
			}
			server.Env = literally(&server, values)
			all = append(all, server)
		case g.Http != nil:
			server := mcptool.Server{Name: g.Http.Name, URL: g.Http.Url}
			values := make([]value, len(g.Http.Headers))
			for i, h := range g.Http.Headers {
				values[i] = value{h.Name, h.Value}
			}
			server.Headers = literally(&server, values)
			all = append(all, server)
		case g.Sse != nil:
			return nil, invalid("mcp server %q uses SSE, which Belay does not support: use streamable HTTP or a command", g.Sse.Name)
		default:
			return nil, invalid("mcpServers[%d]: the kind of the server is not supported: use stdio or http", i)
		}
	}
	return all, nil
}

type value struct{ name, text string }

// literally returns variables or headers for a server. In files a value may contain ${NAME},
// but what an editor sends is meant as it is. So each value becomes a variable of its own.
// Belay also keeps such values out of logs.
func literally(server *mcptool.Server, values []value) map[string]string {
	if len(values) == 0 {
		return nil
	}
	all := make(map[string]string, len(values))
	server.Environ = os.Environ()
	for i, v := range values {
		name := fmt.Sprintf("BELAY_ACP_VALUE_%d", i)
		server.Environ = append(server.Environ, name+"="+strings.ReplaceAll(v.text, "\x00", ""))
		all[v.name] = "${" + name + "}"
	}
	return all
}
