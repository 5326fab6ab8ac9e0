package dialect

import "strings"

// ServerAliases returns the names under which rules for other agents mean a tool of an MCP
// server. server and tool are the names that the server has.
//
//	wiki           mcp__wiki__search
//	my.server      mcp__my_server__search: Claude Code replaces other characters by _
//	project-wiki   mcp__wiki__search, too: Belay puts project- before servers of a project
//	acme-db        mcp__plugin_acme_db__search, too: Belay's name for a server of a plugin
func ServerAliases(server, tool string) []string {
	name := plainName(tool)
	aliases := []string{"mcp__" + plainName(server) + "__" + name}
	if short, ok := strings.CutPrefix(server, "project-"); ok {
		aliases = append(aliases, "mcp__"+plainName(short)+"__"+name)
	}
	for i, c := range server {
		if c == '-' {
			aliases = append(aliases, "mcp__plugin_"+plainName(server[:i]+"_"+server[i+1:])+"__"+name)
		}
	}
	if rest, ok := strings.CutPrefix(server, "plugin_"); ok { // the call of another agent, in its spelling
		for i, c := range rest {
			if c == '_' {
				aliases = append(aliases, rest[:i]+"-"+rest[i+1:]+"__"+tool)
			}
		}
	}
	return aliases
}

// plainName replaces what Claude Code replaces in the names of servers and tools.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, name)
}

// MostMeanings is how many tools [Vendor.ServerTools] returns at most. A name with so many
// meanings may have more: a guard must not let the call pass.
const MostMeanings = 64

// ServerTools returns the tools of MCP servers that a name of the vendor can mean, in the
// form server__tool. GitHub Copilot writes server-tool and Gemini CLI mcp_server_tool, and
// names of servers and tools can have the same sign. Cursor does not name the server: then
// servers are the names that it can have. The result is empty if the name is no tool of a
// server.
func (v Vendor) ServerTools(name string, servers []string) []string {
	var found []string
	splits := func(text, sign string) {
		for i := range text {
			if len(found) < MostMeanings && i > 0 && i+len(sign) < len(text) && strings.HasPrefix(text[i:], sign) {
				found = append(found, text[:i]+"__"+text[i+len(sign):])
			}
		}
	}
	switch {
	case strings.HasPrefix(name, "mcp__"): // one meaning, see OurName
	case v == Copilot && ours[strings.ToLower(name)] == "" && !strings.HasPrefix(name, "mcp_"):
		splits(name, "-")
		splits(name, "/")
	case (v == GeminiCLI || v == Copilot) && strings.HasPrefix(name, "mcp_"):
		splits(strings.TrimPrefix(name, "mcp_"), "_")
	case v == Cursor && strings.HasPrefix(name, "MCP:"):
		rest := strings.TrimSpace(strings.TrimPrefix(name, "MCP:"))
		if server, tool, ok := strings.Cut(rest, ":"); ok && server != "" && tool != "" {
			return []string{server + "__" + tool}
		}
		for _, server := range servers {
			found = append(found, server+"__"+rest)
		}
	case v == GeminiCLI && ours[strings.ToLower(name)] == "" && !Absent(name) && !strings.Contains(name, "__") && len(servers) > 0: // older versions write the bare name
		found = append(found, name)
		for _, server := range servers {
			found = append(found, server+"__"+name)
		}
	}
	return found
}

// MayMean reports whether an agent may write a name of a server or a tool in another way:
// agents change letters and signs, and VS Code cuts names of servers after 13 characters and
// may put a number behind them.
func MayMean(written, name string) bool {
	w, n := alike(written), alike(name)
	bare := strings.TrimRight(w, "0123456789")
	return w == n || bare != "" && bare == n || len(w) >= leastCut && (strings.HasPrefix(n, w) || len(bare) >= leastCut && strings.HasPrefix(n, bare))
}

// leastCut is the length from which a name may be the beginning of a longer one.
const leastCut = 10

// alike returns a name without the differences that agents make.
func alike(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "_").Replace(plainName(name)))
}
