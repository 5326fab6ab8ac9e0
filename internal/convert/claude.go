package convert

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/dialect/claude"
)

// claude reads a setup of Claude Code.
func (im *importer) claude(ctx context.Context) {
	im.hooks()
	for _, name := range []string{"settings.json", "settings.local.json"} {
		im.claudeSettings(im.at(".claude", name))
	}
	if im.User {
		im.claudeUser()
	} else if path, text, ok := im.read(".mcp.json"); ok {
		im.serversIn(path, text, "mcpServers", true)
	}
	im.agents(".claude/agents")
	im.commands(ctx, ".claude/commands")
	im.skills(".claude/skills")
	im.claudeTexts()
	im.at(".claude", "hooks") // the scripts stay where they are
	im.rest(".claude", "projects", "todos", "statsig", "shell-snapshots", "history.jsonl", ".credentials.json", "file-history", "session-env", "debug", "plans", "cache", "backups", "ide", "paste-cache", "telemetry", "tasks", "stats-cache.json")
}

// claudeSettings reads a settings file besides its hooks.
func (im *importer) claudeSettings(path string) {
	s, err := claude.ReadSettings(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		im.notef(path, "not translated: %v", err)
		return
	}
	im.permissions(path, s)
	for _, note := range s.Notes {
		im.notef(path, "%s", note)
	}
	for _, key := range s.Others {
		im.notef(path, "%s: not translated: Belay has no such setting, or another way to set it", key)
	}
	if len(s.Plugins) > 0 {
		im.notef(path, "enabledPlugins: plugins are not copied. Belay uses them where Claude Code has installed them")
	}
	if len(s.Servers) > 0 {
		im.notef(path, "enabledMcpjsonServers: not translated: `belay trust` decides which servers start")
	}
	for _, name := range s.NoServers {
		im.notef(path, "disabledMcpjsonServers: set \"disabled\": true for the server %s in Belay's mcp.json", name)
	}
}

// claudeTexts reads instructions.
func (im *importer) claudeTexts() {
	var texts []instruction
	names := [][]string{{"CLAUDE.md"}, {".claude", "CLAUDE.md"}, {"CLAUDE.local.md"}}
	if im.User {
		names = names[1:2]
	}
	for _, name := range names {
		path, text, ok := im.read(name...)
		switch {
		case !ok:
		case name[0] == "CLAUDE.local.md":
			im.notef(path, "not translated: it is personal. Belay reads it where it is")
		case strings.TrimSpace(text) == "@AGENTS.md":
		default:
			texts = append(texts, instruction{path, text})
		}
	}
	im.instructions(texts, true)
	rules, err := os.ReadDir(im.at(".claude", "rules"))
	if err != nil {
		return // there are none
	}
	for _, e := range rules {
		im.notef(filepath.Join(im.base, ".claude", "rules", e.Name()), "not translated: Belay reads it where it is, if it has no key paths")
	}
}

// claudeUser reads the user's own file ~/.claude.json.
func (im *importer) claudeUser() {
	path, text, ok := im.read(".claude.json")
	if !ok {
		return
	}
	im.serversIn(path, text, "mcpServers", false)
	var keys struct {
		Projects map[string]struct {
			Servers map[string]json.RawMessage `json:"mcpServers"` //nolint:tagliatelle // the file's name
		} `json:"projects"`
	}
	if json.Unmarshal([]byte(text), &keys) == nil {
		for project, p := range keys.Projects {
			for name := range p.Servers {
				im.notef(path, "the MCP server %s of the project %s is not translated: write it into that project's .belay/mcp.json", name, project)
			}
		}
	}
}

// serversIn reads the MCP servers in a key of a JSON file. Without the key, bare says that
// the whole file is the servers.
func (im *importer) serversIn(path, text, key string, bare bool) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		im.notef(path, "not translated: it is not a JSON object: %v", err)
		return
	}
	given := top
	if inner, ok := top[key]; ok {
		given = nil
		if json.Unmarshal(inner, &given) != nil {
			im.notef(path, "not translated: %s is not an object", key)
			return
		}
		if bare {
			for other := range top {
				if other != key && other != "$schema" {
					im.notef(path, "%s: not translated", other)
				}
			}
		}
	} else if !bare {
		return
	}
	im.addServers(path, given)
}
