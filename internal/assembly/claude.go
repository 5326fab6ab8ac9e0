package assembly

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/belay-run/belay/dialect/claude"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/space"
)

// Unheeded returns warnings about files that seem to block or check something, but have no
// effect. These are hooks in the wrong directory, and hooks of Claude Code.
// A user may rely on such a file.
func Unheeded(s *config.Loaded, p *Places) []string {
	var odd []string
	for _, place := range p.All {
		odd = append(odd, Misplaced(s, place)...)
	}
	for _, file := range claudeSettings(s) {
		if claudeHooks(file) && !s.OtherAgents.Uses("hooks") {
			odd = append(odd, fmt.Sprintf("%s: its hooks do not run, because other_agents.ignore has hooks or all (%s)", ShownPath(s, file), s.From("other_agents.ignore")))
		}
	}
	return append(odd, p.Unread...)
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

// claudeHooks reports whether a settings file of Claude Code has hooks. It also reports true
// if the file exists but cannot be read: the file may have a gate.
func claudeHooks(file string) bool {
	settings, err := claude.ReadSettings(file)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return settings.Hooks
}

// ReportUnheeded sends the warnings of [Unheeded].
func (a *Assembler) ReportUnheeded(s *config.Loaded, p *Places) {
	for _, odd := range Unheeded(s, p) {
		a.warn(odd)
	}
}
