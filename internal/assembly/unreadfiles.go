package assembly

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/visible"
)

// otherSetup is a file or a directory of another coding agent that Belay does not read in place.
type otherSetup struct {
	path  string
	agent string // that belay import converts it from, or empty
	gate  bool   // it may have a hook that blocks
}

// otherSetups are the files of a project that other coding agents read.
var otherSetups = []otherSetup{
	{".codex/config.toml", "codex", false},
	{".codex/prompts", "codex", false},
	{".codex/skills", "codex", false},
	{".codex/AGENTS.md", "codex", false},
	{".gemini/commands", "gemini-cli", false},
	{".gemini/agents", "gemini-cli", false},
	{".gemini/skills", "gemini-cli", false},
	{".gemini/GEMINI.md", "gemini-cli", false},
	{".gemini/extensions", "", true},
	{".cursor/hooks.json", "cursor", true},
	{".cursor/mcp.json", "cursor", false},
	{".cursor/rules", "cursor", false},
	{".cursor/commands", "cursor", false},
	{".cursor/agents", "cursor", false},
	{".cursor/skills", "cursor", false},
	{".cursorrules", "cursor", false},
	{".github/hooks", "copilot", true},
	{".github/copilot-instructions.md", "copilot", false},
	{".github/instructions", "copilot", false},
	{".github/prompts", "copilot", false},
	{".github/agents", "copilot", false},
	{".github/chatmodes", "copilot", false},
	{".github/skills", "copilot", false},
	{".vscode/mcp.json", "copilot", false},
	{".agents", "", false},
	{".aider.conf.yml", "", false},
	{".amazonq", "", false},
	{".augment", "", false},
	{".clinerules", "", false},
	{".continue", "", false},
	{".goosehints", "", false},
	{".junie", "", false},
	{".kiro", "", true},
	{".opencode", "", true},
	{"opencode.json", "", false},
	{".roo", "", false},
	{".roomodes", "", false},
	{".windsurf", "", true},
	{".windsurfrules", "", false},
}

// readInClaude are the parts of a directory .claude that Belay reads, or that hooks use.
var readInClaude = []string{"CLAUDE.md", "agents", "commands", "hooks", "rules", "settings.json", "settings.local.json", "skills"}

// actInClaude are parts of a directory .claude that change what Claude Code does. The author of
// other files knows that they do nothing by themselves.
var actInClaude = []string{".mcp.json", "AGENTS.md", "hooks.json", "loop.md", "mcp.json", "output-styles", "plugins", "workflows"}

// unreadUses reports the files of other coding agents in the project that Belay does not read.
func unreadUses(s *config.Loaded) []OtherFile {
	var uses []OtherFile
	dir := filepath.Join(s.Project, ".claude")
	entries, _ := os.ReadDir(dir) // without the directory there are none
	var acts, others []string
	for _, e := range entries {
		switch name := visible.OneLine(e.Name()); {
		case slices.Contains(readInClaude, name) || name == ".DS_Store":
		case slices.Contains(actInClaude, name):
			acts = append(acts, name)
		default:
			others = append(others, name)
		}
	}
	if len(acts) > 0 {
		uses = append(uses, OtherFile{Path: ".claude", Use: "Belay does not use " + someNames(acts), Partly: true})
	}
	if len(others) > 0 {
		uses = append(uses, OtherFile{Path: ".claude", Use: "Belay does not read " + someNames(others)})
	}
	if isFile(filepath.Join(dir, "hooks", "hooks.json")) {
		uses = append(uses, OtherFile{Path: ".claude/hooks/hooks.json", Use: "not used: Claude Code reads such a file only in a plugin, and so does Belay: move its hooks to .claude/settings.json", Partly: true})
	}
	for _, part := range []string{"agents", "commands", "rules"} {
		if names := notMarkdown(filepath.Join(dir, part)); len(names) > 0 {
			uses = append(uses, OtherFile{Path: ".claude/" + part, Use: fmt.Sprintf("not read, because their names do not end in .md: %s", someNames(names))})
		}
	}
	for _, one := range otherSetups {
		if _, err := os.Lstat(filepath.Join(s.Project, filepath.FromSlash(one.path))); err != nil {
			continue
		}
		f := OtherFile{Path: one.path, Use: "Belay does not read it", Partly: one.gate}
		if one.gate {
			f.Use += ", and it may have hooks that block"
		}
		if one.agent != "" {
			f.Use += fmt.Sprintf(": `belay import --agent %s` says what becomes of it", one.agent)
		}
		uses = append(uses, f)
	}
	return uses
}

// notMarkdown returns the files of a directory, and of its subdirectories, that are not Markdown.
// It leaves out hidden ones.
func notMarkdown(dir string) []string {
	var names []string
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // what cannot be read is reported by those that read it
		switch {
		case err != nil:
		case path != dir && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
		case !e.IsDir() && filepath.Ext(path) != ".md":
			if rel, err := filepath.Rel(dir, path); err == nil {
				names = append(names, visible.OneLine(filepath.ToSlash(rel)))
			}
		}
		return nil //nolint:nilerr // likewise
	})
	return names
}

// mostNames is how many names are listed.
const mostNames = 8

func someNames(names []string) string {
	if more := len(names) - mostNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
