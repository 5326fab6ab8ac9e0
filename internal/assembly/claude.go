package assembly

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/space"
)

// otherAgent is the docs page about files that were written for Claude Code.
const otherAgent = "docs/coming-from-claude-code.md"

// Unheeded returns warnings about files that seem to block or check something, but have no
// effect. These are hooks in the wrong directory, and hooks and permissions of Claude Code.
// A user may rely on such a file.
func Unheeded(s *config.Loaded, p *Places) []string {
	var odd []string
	for _, place := range p.All {
		odd = append(odd, Misplaced(s, place)...)
	}
	for _, file := range claudeSettings(s) {
		if keys, _ := claudeKeys(file); len(keys) > 0 {
			odd = append(odd, fmt.Sprintf("%s: Belay ignores its %s, which are for Claude Code: write hooks into .belay/hooks (`belay hooks new ID`) and rules into permit.rules of belay.yaml; see %s",
				ShownPath(s, file), strings.Join(keys, " and "), otherAgent))
		}
	}
	return odd
}

// Misplaced returns warnings about files of a place that look like hooks, but are not read.
func Misplaced(s *config.Loaded, place *space.Space) []string {
	var odd []string
	for _, file := range place.Misplaced() {
		odd = append(odd, fmt.Sprintf("%s: Belay does not read this file, and it may have a gate: Belay reads hooks from the files *.yaml, *.yml and *.json in %s, but not in its subdirectories: move the file there",
			ShownPath(s, file), ShownPath(s, filepath.Join(place.Dir, "hooks"))))
	}
	return odd
}

// claudeSettings returns the settings files of Claude Code in a project.
func claudeSettings(s *config.Loaded) []string {
	dir := filepath.Join(s.Project, ".claude")
	return []string{filepath.Join(dir, "settings.json"), filepath.Join(dir, "settings.local.json")}
}

// claudeKeys returns which of "hooks" and "permissions" a settings file of Claude Code
// has. If the file exists but cannot be read or is not valid JSON, it returns both. If the
// permissions only allow calls, it leaves them out of keys and sets allows: Belay ignores
// them and only asks more often.
func claudeKeys(file string) (keys []string, allows bool) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() { // opening a pipe would block
		return nil, false
	}
	text, err := readFirst(file, 1<<20)
	var settings struct {
		Hooks       map[string]json.RawMessage `json:"hooks"`
		Permissions struct {
			Allow []json.RawMessage `json:"allow"`
			Ask   []json.RawMessage `json:"ask"`
			Deny  []json.RawMessage `json:"deny"`
		} `json:"permissions"`
	}
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return []string{"hooks", "permissions"}, false
	}
	if len(settings.Hooks) > 0 {
		keys = append(keys, "hooks")
	}
	if p := settings.Permissions; len(p.Ask)+len(p.Deny) > 0 {
		return append(keys, "permissions"), false
	}
	return keys, len(settings.Permissions.Allow) > 0
}

// readFirst reads the beginning of a file, with at most this many bytes.
func readFirst(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // ignore errors: the file was only read
	return io.ReadAll(io.LimitReader(f, most))
}

// ReportUnheeded sends the warnings of [Unheeded].
func (a *Assembler) ReportUnheeded(s *config.Loaded, p *Places) {
	for _, odd := range Unheeded(s, p) {
		a.warn(odd)
	}
}
