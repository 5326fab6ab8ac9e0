package convert

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/skill"
)

// cursor reads a setup of Cursor.
func (im *importer) cursor(ctx context.Context) {
	im.foreignHooks(".cursor/hooks.json")
	im.at(".cursor", "hooks")
	if path, text, ok := im.read(".cursor", "mcp.json"); ok {
		im.serversIn(path, text, "mcpServers", false)
	}
	for _, name := range []string{"cli.json", "cli-config.json"} {
		if path, text, ok := im.read(".cursor", name); ok {
			im.cursorPermissions(path, text)
		}
	}
	im.commands(ctx, ".cursor/commands")
	im.agents(".cursor/agents")
	im.skills(".cursor/skills")
	texts := im.ruleFiles(".cursor/rules", ".mdc", "globs")
	if !im.User {
		if path, text, ok := im.read(".cursorrules"); ok {
			texts = append(texts, instruction{path, text})
		}
	}
	im.instructions(texts, false)
	im.rest(".cursor", "extensions", "projects", "ide_state.json", "argv.json", "chats", "plans")
}

// foreignHooks notes the hooks of an agent whose hooks Belay does not run.
func (im *importer) foreignHooks(name string) {
	path, text, ok := im.read(filepath.FromSlash(name))
	if !ok {
		return
	}
	var file struct {
		Hooks map[string][]json.RawMessage `json:"hooks"`
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		im.notef(path, "not translated: it cannot be read: %v", err)
		return
	}
	for _, event := range slices.Sorted(maps.Keys(file.Hooks)) {
		im.plan.Read += len(file.Hooks[event])
		im.notef(path, "%s (%d): not translated: Belay runs no hooks of %s. Write them as hooks of Belay, see docs/declared-hooks.md", event, len(file.Hooks[event]), im.Agent.Title())
	}
}

// cursorPermissions translates the permissions of Cursor's command line to those of Claude
// Code.
func (im *importer) cursorPermissions(path, text string) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		im.notef(path, "not translated: it is not a JSON object: %v", err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if key != "permissions" && key != "version" {
			im.notef(path, "%s: not translated", key)
		}
	}
	var p struct {
		Allow []string `json:"allow"`
		Deny  []string `json:"deny"`
	}
	if top["permissions"] != nil && json.Unmarshal(top["permissions"], &p) != nil {
		im.notef(path, "permissions: not translated: allow and deny must be lists of texts")
		return
	}
	s := new(claude.Settings)
	for _, one := range p.Allow {
		if rule := cursorRule(one); rule != "" {
			s.Allow = append(s.Allow, rule)
		} else {
			im.notef(path, "allow %s: not translated", one)
		}
	}
	for _, one := range p.Deny {
		if rule := cursorRule(one); rule != "" {
			s.Deny = append(s.Deny, rule)
		} else {
			im.notef(path, "deny %s: not translated: Belay does not know this form. Write a rule into belay.yaml", one)
		}
	}
	im.permissions(path, s)
}

// cursorRule returns the rule of Claude Code for a rule of Cursor, or "".
func cursorRule(text string) string {
	name, limit, _ := strings.Cut(text, "(")
	limit = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(limit), ")"))
	switch name {
	case "Shell":
		if limit == "" || limit == "*" || limit == "**" {
			return "Bash"
		}
		command, args, _ := strings.Cut(limit, ":")
		if args = strings.TrimSpace(args); args != "" && args != "*" && args != "**" {
			return "Bash(" + command + " " + args + ")"
		}
		return "Bash(" + command + ":*)"
	case "Read":
		return "Read(" + limit + ")"
	case "Write":
		return "Edit(" + limit + ")"
	case "WebFetch":
		if limit == "" || strings.Contains(limit, "*") {
			return "WebFetch"
		}
		return "WebFetch(domain:" + limit + ")"
	case "Mcp":
		server, tool, _ := strings.Cut(limit, ":")
		if server == "" || tool == "" {
			return ""
		}
		return "mcp__" + server + "__" + tool
	default:
		return ""
	}
}

// ruleFiles reads rules with frontmatter: those that always apply become instructions, those
// with a description become skills, and the others are notes. scope is the key that limits a
// rule to files.
func (im *importer) ruleFiles(dir, ext, scope string) []instruction {
	var texts []instruction
	_ = filepath.WalkDir(im.at(dir), func(path string, e fs.DirEntry, err error) error { // the function returns no error
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // there are no rules
		}
		if !strings.HasSuffix(path, ext) {
			im.notef(path, "not translated: it is not a file *%s", ext)
			return nil
		}
		text, ok := im.readFile(path)
		if !ok {
			return nil
		}
		im.plan.Read--
		doc, err := frontmatter.Parse(text)
		if err != nil {
			im.plan.Read++
			im.notef(path, "not translated: %v", err)
			return nil
		}
		field := func(key string) string {
			if v := doc.Field(key); v != nil {
				return strings.TrimSpace(v.Text)
			}
			return ""
		}
		limit := field(scope)
		switch always := field("alwaysApply") == "true" || limit == "**" || limit == "*" || limit == "**/*" || !doc.Found; {
		case always:
			texts = append(texts, instruction{path, doc.Body})
		case field("description") != "":
			if limit != "" {
				im.notef(path, "%s: %s has no effect: the model reads the skill when its description fits", scope, limit)
			}
			name := strings.TrimSuffix(filepath.Base(path), ext)
			im.command(&skill.Skill{Name: name, Description: field("description"), Path: path}, doc.Body)
		default:
			im.plan.Read++
			im.notef(path, "not translated: it applies only to %s, which Belay cannot express. Put its text into an AGENTS.md of that directory", limit)
		}
		return nil
	})
	return texts
}
