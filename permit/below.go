package permit

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mostBelow limits how often files below a directory are compared with rules. If there
// are more files, every remaining rule counts as a match.
const mostBelow = 50_000

// anything stands for any file name in a path. No pattern contains it.
const anything = "\x01"

// absolute returns the subject of a finding as an absolute path.
func (f *Floor) absolute(subject string) string {
	if filepath.IsAbs(filepath.FromSlash(subject)) {
		return subject
	}
	return path.Join(f.project.path, subject)
}

// isDirectory reports whether a subject is a directory now.
func (f *Floor) isDirectory(subject string) bool {
	info, err := os.Lstat(filepath.FromSlash(f.absolute(subject)))
	return err == nil && info.IsDir()
}

// below calls found for each rule that matches a file below dir, with the path of that
// file. It looks only at files that exist now.
func (f *Floor) below(dir string, rules []*rule, found func(r *rule, what string)) {
	top := f.absolute(dir)
	if !f.isDirectory(dir) {
		return
	}
	walks := map[string][]*rule{}
	for _, r := range rules {
		fixed, rest := fixedGlob(r.path)
		start := f.absolute(fixed)
		if _, ok := (root{top}).holds(start); ok {
			if _, err := os.Lstat(filepath.FromSlash(start)); err != nil {
				continue // no such file exists
			}
			if rest == "" || rest == "**" {
				if start != top {
					found(r, fixed)
				}
				continue
			}
		} else if _, ok := (root{start}).holds(top); !ok {
			continue
		} else {
			start = top
		}
		walks[start] = append(walks[start], r)
	}
	for start, some := range walks {
		f.walk(start, some, found)
	}
}

// under returns the ask and deny rules that may match something below a directory. It
// uses an index, so that rules for other directories cost little.
func (x *pathIndex) under(f *Floor, dir string) []*rule {
	if filepath.IsAbs(filepath.FromSlash(dir)) {
		return x.wary
	}
	first, _, _ := strings.Cut(dir, "/")
	begins := []string{first}
	if dir == "." && len(x.wary) > len(x.loose) {
		top, err := os.Open(filepath.FromSlash(f.project.path))
		if err != nil {
			return x.wary
		}
		begins, err = top.Readdirnames(mostBelow)
		_ = top.Close() // a failed close does not matter after reading
		if err != nil || len(begins) == mostBelow {
			return x.wary
		}
	}
	rules := slices.Clone(x.loose)
	for _, name := range begins {
		for _, r := range x.first[name] {
			if !r.strict() {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// fixedGlob splits a pattern after its leading directories that have no wildcards.
func fixedGlob(glob string) (fixed, rest string) {
	for rest = glob; rest != ""; {
		part, more, _ := strings.Cut(rest, "/")
		if strings.ContainsAny(part, meta) {
			break
		}
		fixed, rest = path.Join(fixed, part), more
		if fixed == "" {
			fixed = "/"
		}
	}
	if strings.HasPrefix(glob, "/") && !strings.HasPrefix(fixed, "/") {
		fixed = "/" + fixed
	}
	return fixed, rest
}

// walk searches a directory until every rule has a match.
func (f *Floor) walk(start string, rules []*rule, found func(r *rule, what string)) {
	rules = slices.Clone(rules)
	budget := mostBelow
	_ = filepath.WalkDir(filepath.FromSlash(start), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == filepath.FromSlash(start) {
			return nil //nolint:nilerr // what cannot be read here cannot be read by a command either
		}
		name = filepath.ToSlash(name)
		if rel, ok := f.project.holds(name); ok {
			name = rel
		}
		budget -= len(rules)
		rules = slices.DeleteFunc(rules, func(r *rule) bool {
			switch {
			case budget < 0:
				found(r, "too many files to check")
			case r.matchesPath(name):
				found(r, name)
			default:
				return false
			}
			return true
		})
		switch {
		case len(rules) == 0:
			return fs.SkipAll
		case entry.IsDir() && name == ".git/objects": // the names in it are hashes
			return fs.SkipDir
		default:
			return nil
		}
	})
}
