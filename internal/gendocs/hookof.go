package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/dialect"
	"github.com/belay-run/belay/dialect/guard"
)

// hookOfPages are the pages with tables of the events of other agents at which Belay runs
// hooks.
var hookOfPages = map[string][]dialect.Vendor{
	"docs/belay-as-a-hook.md": {dialect.ClaudeCode, dialect.Codex, dialect.GeminiCLI},
	"docs/agents-cursor.md":   {dialect.Cursor},
	"docs/agents-copilot.md":  {dialect.Copilot},
}

// addHookOf adds the pages with their tables.
func addHookOf(root string, files map[string][]byte) error {
	for name, agents := range hookOfPages {
		page, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		for _, agent := range agents {
			if page, err = replaceRegion(page, "hook-of-"+string(agent), hookOfTable(agent)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if len(agent.Events()) > 0 {
				continue // the sources are on the page of its hooks
			}
			if page, err = replaceRegion(page, "sources", contractList(agent)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		files[name] = page
	}
	return nil
}

func hookOfTable(agent dialect.Vendor) string {
	var b strings.Builder
	b.WriteString("| event | phase | an answer can | what it cannot |\n|---|---|---|---|\n")
	for _, r := range guard.Rows(agent) {
		name := "`" + r.Event + "`"
		if !r.Installed {
			name += " (by hand)"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, r.Phase, r.Can, r.Safer)
	}
	return b.String()
}
