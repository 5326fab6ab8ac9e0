package assembly

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// addedRoots are the directories that a person has added since the agent was made.
type addedRoots struct {
	mu  sync.Mutex
	all []string
}

// Roots returns the directories beside the project that exist: those of the settings, and those
// that [Assembled.AddRoot] has added.
func (f *Floor) Roots() []string {
	f.roots.mu.Lock()
	defer f.roots.mu.Unlock()
	return append(Existing(f.settings.Permit.Roots), f.roots.all...)
}

// AddRoot lets the agent use a directory like the project, until the agent is closed: its file
// tools, its commands in the sandbox, and the floor. It returns the path of the directory.
func (w *Assembled) AddRoot(dir string) (string, error) {
	full, err := w.rootOf(dir)
	if err != nil || slices.Contains(w.Floor.Roots(), full) {
		return full, err
	}
	root, err := os.OpenRoot(full)
	if err != nil {
		return "", mistake("cannot use the directory: %w", err)
	}
	w.OnClose(root.Close)
	if err := w.Floor.AddRoot(full); err != nil {
		return "", mistake("%w", err)
	}
	w.stock.AddRoot(root)
	w.Floor.roots.mu.Lock()
	defer w.Floor.roots.mu.Unlock()
	w.Floor.roots.all = append(w.Floor.roots.all, full)
	return full, nil
}

// rootOf returns the full path of a directory that can be added.
func (w *Assembled) rootOf(dir string) (string, error) {
	home, err := os.UserHomeDir()
	if rest, ok := strings.CutPrefix(dir, "~"); ok && err == nil && (rest == "" || os.IsPathSeparator(rest[0])) {
		dir = home + rest
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(w.Settings.Project, dir)
	}
	full, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", mistake("there is no directory %s", dir)
	}
	if info, err := os.Stat(full); err != nil || !info.IsDir() {
		return "", mistake("%s is not a directory", dir)
	}
	for _, inner := range []string{w.Settings.Project, home} {
		if inner != "" && below(direct(inner), []string{full}) {
			return "", mistake("%s contains %s: name a smaller directory", full, inner)
		}
	}
	for _, own := range ownFiles(w.Settings) {
		if below(full, []string{own}) {
			return "", fmt.Errorf("%s belongs to Belay: it cannot be added", full)
		}
	}
	return full, nil
}
