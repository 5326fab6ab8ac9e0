package space

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
)

// Misplaced are the files, as absolute paths, that look like hooks and are not read,
// because they are not in hooks/ itself: hooks.yaml beside it, a directory hook, and
// directories in hooks/. Each may have a gate that somebody counts on.
func (s *Space) Misplaced() []string {
	var found []string
	for _, name := range []string{"hooks", "hook"} {
		for _, ending := range endings {
			found = append(found, filepath.Join(s.Dir, name+ending))
		}
	}
	if entries, err := os.ReadDir(filepath.Join(s.Dir, "hook")); err == nil {
		for _, e := range entries {
			if isDeclaring(e.Name()) {
				found = append(found, filepath.Join(s.Dir, "hook", e.Name()))
			}
		}
	}
	found = slices.DeleteFunc(found, func(file string) bool {
		info, err := os.Stat(file)
		return err != nil || !info.Mode().IsRegular()
	})
	for _, name := range slices.Sorted(maps.Keys(s.read)) {
		below, ok := strings.CutPrefix(name, "hooks/")
		if ok && strings.Contains(below, "/") && isDeclaring(name) && !s.written[name] {
			if file := filepath.Join(s.Dir, filepath.FromSlash(name)); declares(file) {
				found = append(found, file)
			}
		}
	}
	return found
}

// endings are those of files that declare hooks.
var endings = []string{".yaml", ".yml", ".json"}

func isDeclaring(name string) bool {
	return slices.Contains(endings, strings.ToLower(filepath.Ext(name)))
}

// hooksKey is the key hooks where a YAML file has it, and phaseKey that of a hook.
var (
	hooksKey = regexp.MustCompile(`(?m)^["']?hooks["']?[ \t]*:`)
	phaseKey = regexp.MustCompile(`(?m)^[ \t]*(?:-[ \t]+)?(?:\{[ \t]*)?["']?phase["']?[ \t]*:`)
)

// declares reports whether a file looks like one with hooks: scripts have other files
// beside them. One that is too long to look at might be.
func declares(file string) bool {
	text, err := readAtMost(file, declare.Limit)
	if err != nil {
		return true
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(text, &keys) == nil {
		return keys["hooks"] != nil || keys["phase"] != nil
	}
	return hooksKey.Match(text) || phaseKey.Match(text)
}
