package space

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/declare"
	"github.com/belay-run/belay/internal/lazyregexp"
)

// Misplaced returns the absolute paths of files that look like hook files but are not read,
// because they are not directly in hooks/. Examples are a hooks.yaml beside hooks/, files
// in a directory hook/, and files in subdirectories of hooks/. Such a file may contain a
// gate that somebody relies on.
func (s *Space) Misplaced() []string {
	if s.foreign != nil {
		return nil
	}
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

// endings are the file name extensions of hook files.
var endings = []string{".yaml", ".yml", ".json"}

func isDeclaring(name string) bool {
	return slices.Contains(endings, strings.ToLower(filepath.Ext(name)))
}

// hooksKey matches the key "hooks" in a YAML file. phaseKey matches the key "phase" of a
// hook.
var (
	hooksKey = lazyregexp.New(`(?m)^["']?hooks["']?[ \t]*:`)
	phaseKey = lazyregexp.New(`(?m)^[ \t]*(?:-[ \t]+)?(?:\{[ \t]*)?["']?phase["']?[ \t]*:`)
)

// declares reports whether a file looks like a hook file. Scripts may have other YAML and
// JSON files beside them. A file that cannot be read counts as a hook file.
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
