package convert

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/skill"
)

// gemini reads a setup of Gemini CLI.
func (im *importer) gemini(context.Context) {
	im.hooks()
	im.at(".gemini", "hooks")
	if path, text, ok := im.read(".gemini", "settings.json"); ok {
		im.geminiSettings(path, text)
	}
	im.geminiCommands()
	im.agents(".gemini/agents")
	im.skills(".gemini/skills")
	name := []string{"GEMINI.md"}
	if im.User {
		name = []string{".gemini", "GEMINI.md"}
	}
	if path, text, ok := im.read(name...); ok {
		im.instructions([]instruction{{path, text}}, !im.User)
	}
	im.rest(".gemini", "oauth_creds.json", "google_accounts.json", "installation_id", "tmp", "history", "state.json", "trustedFolders.json", "projects.json")
}

func (im *importer) geminiSettings(path, text string) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &top); err != nil {
		im.notef(path, "not translated: it is not a JSON object: %v", err)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		switch key {
		case "hooks", "$schema": // see hooks
		case "mcpServers":
			im.serversIn(path, text, key, false)
		case "excludeTools":
			im.geminiRules(path, key, top[key])
		case "tools":
			var tools map[string]json.RawMessage
			_ = json.Unmarshal(top[key], &tools) // another type has no keys
			for _, inner := range slices.Sorted(maps.Keys(tools)) {
				if inner == "exclude" {
					im.geminiRules(path, "tools.exclude", tools[inner])
				} else {
					im.notef(path, "tools.%s: not translated: see tools and permit in belay.yaml", inner)
				}
			}
		default:
			im.plan.Read++
			im.notef(path, "%s: not translated: Belay has no such setting, or another way to set it", key)
		}
	}
}

// geminiRules translates a list of tools that are excluded.
func (im *importer) geminiRules(path, key string, value json.RawMessage) {
	var list []string
	if json.Unmarshal(value, &list) != nil {
		im.notef(path, "%s: not translated: it is not a list of texts", key)
		return
	}
	s := new(claude.Settings)
	for _, one := range list {
		name, limit, limited := strings.Cut(one, "(")
		name = strings.TrimSuffix(strings.TrimSuffix(name, "Tool"), "Shell") // older versions have ShellTool
		if name == "" {
			name = "run_shell_command"
		}
		ours, known := dialect.OurName(name)
		switch {
		case known && ours == "shell" && limited:
			s.Deny = append(s.Deny, "Bash("+strings.TrimSuffix(strings.TrimSpace(limit), ")")+":*)")
		case known && len(dialect.ClaudeCode.Names(ours)) > 0:
			s.Deny = append(s.Deny, dialect.ClaudeCode.Names(ours)[0])
			if ours == "write" || ours == "edit" { // a rule of Claude Code about one covers both
				im.notef(path, "%s: %s: Belay denies all tools that change files", key, one)
			}
		default:
			im.notef(path, "%s: %s: not translated: Belay has no such tool", key, one)
		}
	}
	im.permissions(path, s)
}

// geminiCommands reads commands, which are TOML files.
func (im *importer) geminiCommands() {
	root := im.at(".gemini", "commands")
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error { // the function returns no error
		if err != nil || e.IsDir() {
			return nil //nolint:nilerr // there are no commands
		}
		if filepath.Ext(path) != ".toml" {
			im.notef(path, "not translated: it is not a TOML file")
			return nil
		}
		text, ok := im.readFile(path)
		if !ok {
			return nil
		}
		im.plan.Read--
		var c struct {
			Prompt      string `toml:"prompt"`
			Description string `toml:"description"`
		}
		if err := toml.Unmarshal([]byte(text), &c); err != nil || c.Prompt == "" {
			im.notef(path, "not translated: it has no prompt, or is not valid TOML")
			return nil //nolint:nilerr // the note tells
		}
		rel, err := filepath.Rel(root, strings.TrimSuffix(path, ".toml"))
		if err != nil {
			return nil //nolint:nilerr // it is below root
		}
		body := c.Prompt
		if strings.Contains(body, "!{") {
			im.plan.Read++
			im.notef(path, "not translated: its text runs shell commands, and trust does not cover skills of Belay")
			return nil
		}
		body = geminiFile.ReplaceAllString(body, "@$1")
		if body = strings.ReplaceAll(body, "{{args}}", "$ARGUMENTS"); body == c.Prompt {
			body += "\n\n$ARGUMENTS" // Gemini CLI adds them
		}
		im.command(&skill.Skill{Name: strings.ReplaceAll(filepath.ToSlash(rel), "/", ":"), Description: c.Description, Path: path, UserOnly: true}, body)
		return nil
	})
}

var geminiFile = lazyregexp.New(`@\{([^}]+)\}`)
