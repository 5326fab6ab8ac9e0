package convert

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/frontmatter"
	"github.com/belay-run/belay/skill"
)

// copilot reads a setup of GitHub Copilot.
func (im *importer) copilot(context.Context) {
	if im.User {
		if path, text, ok := im.read(".copilot", "mcp-config.json"); ok {
			im.serversIn(path, text, "mcpServers", false)
		}
		im.agents(".copilot/agents")
		im.rest(".copilot", "logs", "session-state", "history-session-state", "command-history-state.json")
		return
	}
	entries, _ := os.ReadDir(im.at(".github", "hooks")) // without the directory there are none
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".json" {
			im.foreignHooks(filepath.Join(".github", "hooks", e.Name()))
		}
	}
	if path, text, ok := im.read(".vscode", "mcp.json"); ok {
		im.serversIn(path, text, "servers", false)
	}
	im.copilotPrompts(".github/prompts", ".prompt.md")
	im.agents(".github/agents")
	im.copilotPrompts(".github/chatmodes", ".chatmode.md")
	im.skills(".github/skills")
	var texts []instruction
	if path, text, ok := im.read(".github", "copilot-instructions.md"); ok {
		texts = append(texts, instruction{path, text})
	}
	im.instructions(append(texts, im.ruleFiles(".github/instructions", ".instructions.md", "applyTo")...), false)
}

// copilotPrompts writes prompts as skills. The keys agent, mode, model and tools have no
// effect.
func (im *importer) copilotPrompts(dir, ext string) {
	entries, _ := os.ReadDir(im.at(dir)) // without the directory there are none
	for _, e := range entries {
		path := filepath.Join(im.base, dir, e.Name())
		text, ok := "", false
		if strings.HasSuffix(e.Name(), ext) {
			text, ok = im.readFile(path)
		} else {
			im.notef(path, "not translated: it is not a file *%s", ext)
		}
		if !ok {
			continue
		}
		doc, err := frontmatter.Parse(text)
		if err != nil {
			im.notef(path, "not translated: %v", err)
			continue
		}
		im.plan.Read--
		s := &skill.Skill{Name: strings.TrimSuffix(e.Name(), ext), Path: path, UserOnly: true}
		for i := range doc.Fields {
			switch f := &doc.Fields[i]; f.Key {
			case "description":
				s.Description = f.Value.Text
			case "name", "argument-hint":
			default:
				im.notef(path, "%s has no effect in a skill", f.Key)
			}
		}
		if strings.Contains(doc.Body, "${input:") || strings.Contains(doc.Body, "${selection}") || strings.Contains(doc.Body, "${file}") {
			im.notef(path, "its variables such as ${input:NAME} are not replaced: the model sees them as they are")
		}
		im.command(s, strings.TrimSpace(doc.Body)+"\n\n$ARGUMENTS")
	}
}
