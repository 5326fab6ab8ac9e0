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

// mostGuesses limits how many tools a name can mean.
const mostGuesses = 16

// ServerTools returns the tools of MCP servers that a name of the vendor can mean, in the
// form server__tool. GitHub Copilot writes server-tool and Gemini CLI mcp_server_tool, and
// names of servers and tools can have the same sign. Cursor does not name the server: then
// servers are the names that it can have. The result is empty if the name is no tool of a
// server.
func (v Vendor) ServerTools(name string, servers []string) []string {
	var found []string
	splits := func(text, sign string) {
		for i := range text {
			if len(found) < mostGuesses && i > 0 && i+len(sign) < len(text) && strings.HasPrefix(text[i:], sign) {
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
	}
	return found
}
