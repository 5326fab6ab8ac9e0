package permit

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mostBelow is how many files are looked at below a directory for the sake of rules. A
// directory with more may hold anything.
const mostBelow = 50_000

// anything stands for a part of a path that no pattern names.
const anything = "\x01"

// absolute is a subject as a path from the root.
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

// below finds the rules that are about something which is below a directory now, and
// says what. Rules are compared with what is there, as protections are: a directory
// that could hold a key and does not is searched like any other.
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
				continue // nothing of the kind is there
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

// under are the rules that ask or deny which may be about something below a directory.
// Their number should not matter where few of them name what is there.
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
		_ = top.Close() // it was only read
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

// fixedGlob cuts a pattern behind the directories that it names as they are.
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

// walk goes through a directory until something was found for each of the rules.
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
		case entry.IsDir() && name == ".git/objects": // by their hashes
			return fs.SkipDir
		default:
			return nil
		}
	})
}
