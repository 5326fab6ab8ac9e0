package permit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect analyses a redirection. It returns the standard input of the command if the
// redirection determines it. in says that the redirection provides the standard input.
func (a *analysis) redirect(r *syntax.Redirect) (stdin arg, in bool) {
	switch {
	case (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) && r.Hdoc == nil:
		return literal(""), true
	case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
		return a.value(r.Hdoc), true
	case r.Op == syntax.WordHdoc:
		return a.value(r.Word), true
	}
	if (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && r.Word.Lit() == "" && a.numeric(r.Word) {
		return arg{}, false // this is a file descriptor
	}
	targets := a.fields(r.Word)
	if len(targets) != 1 {
		a.doubt(a.written(r.Word), "cannot determine which file this redirection uses")
		return arg{}, r.Op == syntax.RdrIn
	}
	target := targets[0]
	if target.pipe {
		return arg{}, r.Op == syntax.RdrIn
	}
	if (r.Op == syntax.DplIn || r.Op == syntax.DplOut) && target.known && (isNumber(strings.TrimSuffix(target.text, "-")) || target.text == "-") {
		return arg{}, false
	}
	if target.known && (strings.HasPrefix(target.text, "/dev/tcp/") || strings.HasPrefix(target.text, "/dev/udp/")) {
		host, _, _ := strings.Cut(target.text[len("/dev/tcp/"):], "/")
		a.address(literal(host), ZoneExternal)
		return arg{}, true
	}
	switch r.Op {
	case syntax.RdrIn:
		a.path(target, reads)
		return arg{}, true
	case syntax.RdrInOut:
		a.path(target, changes)
		return arg{}, true
	default:
		a.path(target, changes)
		return arg{}, false
	}
}

// path records what a command does to a path.
func (a *analysis) path(w arg, do effect) {
	w.use()
	switch {
	case w.pipe, w.known && w.text == "-" && do == reads:
		return
	case !w.known:
		kind := KindRead
		if do != reads {
			kind = KindWrite
		}
		a.add(Finding{Kind: kind, Subject: w.text, Zone: ZoneMachine, Why: "cannot determine which path this is", opaque: true, does: do})
		return
	case w.text == "":
		return
	case w.joined && do != reads:
		a.add(Finding{Kind: KindWrite, Subject: w.text, Zone: ZoneMachine, Why: "cannot determine which file this is: its name contains the names of other files", opaque: true, does: do})
		return
	}
	if w.pattern && do >= rewrites {
		for _, dir := range a.fixed(filepath.FromSlash(w.text)) { // the command changes most of this directory
			s := a.floor.locate(dir)
			if why := a.floor.ruinous(&s, do); why != "" {
				a.add(Finding{Kind: KindWrite, Subject: w.text, Zone: ZoneNever, Why: why, does: do})
				return
			}
		}
	}
	spots := a.spots(w, do)
	if do == removes && !w.pattern {
		spots = a.entries(w)
	}
	if spots == nil {
		a.doubt(w.text, "cannot determine the directory of this path")
		return
	}
	if w.follows && do != removes {
		spots = append(spots, a.followed(w, spots)...)
	}
	var seen map[string]bool
	if len(spots) > 1 {
		seen = make(map[string]bool, len(spots))
	}
	for i := range spots {
		s := &spots[i]
		if seen[s.path] {
			continue
		}
		if seen != nil {
			seen[s.path] = true
		}
		s.tree, s.below = s.tree || w.tree, s.below || w.below
		mayBeReplaced := a.mayBeReplaced(w, s, do)
		if f := a.floor.judgePath(s, do, false); !mayBeReplaced && i < mostMatches || f.Zone > ZoneWorkspace {
			a.add(f)
		}
	}
}

// mayTouch records that a command may change a path. It ignores a path if changing the
// path is at most ZoneWorkspace.
func (a *analysis) mayTouch(w arg) {
	w.use()
	if w.text == "" || strings.ContainsAny(w.text, "\n\x00") {
		return
	}
	for _, s := range a.spots(w, changes) {
		f := a.floor.judgePath(&s, changes, false)
		if f.Protection == systemWrite || f.Zone == ZoneNever { // perhaps the command only reads the path, so do not deny
			f.Zone, f.Protection, f.Why = ZoneMachine, shellOutside, "it is outside the project"
		}
		if f.Zone > ZoneWorkspace {
			a.add(f)
		}
	}
}

// spots returns the files that a path may lead to. It returns nil if they are unknown.
func (a *analysis) spots(w arg, do effect) []spot {
	text := filepath.FromSlash(w.text)
	if w.pattern {
		return a.matches(text, do)
	}
	if filepath.IsAbs(text) {
		return []spot{a.floor.locateFrom("", text)}
	}
	spots := make([]spot, len(a.dirs))
	for i, dir := range a.dirs {
		if strings.Contains(text, "..") {
			spots[i] = a.floor.locateFrom(dir, text)
		} else {
			spots[i] = a.locate(filepath.Join(dir, text))
		}
	}
	if len(spots) == 0 {
		return nil
	}
	return spots
}

// mostLocated is how many paths are cached while a line is judged. A line names few
// paths, but most of them several times. Following a path needs system calls.
const mostLocated = 8

// locate is like Floor.locate, with a cache.
func (a *analysis) locate(path string) spot {
	for i := range a.located {
		if a.located[i].from == path {
			return a.located[i].spot
		}
	}
	s := a.floor.locate(path)
	if len(a.located) < mostLocated {
		a.located = append(a.located, located{path, s})
	}
	return s
}

// located is a cached result of locate.
type located struct {
	from string
	spot spot
}

// entries returns the spots of a path itself. If the path is a link, this is the link and
// not its target, unless the path ends with a slash.
func (a *analysis) entries(w arg) []spot {
	if strings.HasSuffix(w.text, "/") || w.text == "." || w.text == ".." || strings.HasSuffix(w.text, "/.") || strings.HasSuffix(w.text, "/..") {
		return a.spots(w, removes)
	}
	dir, name := filepath.Split(filepath.FromSlash(w.text))
	if dir == "" {
		dir = "."
	}
	holders := a.spots(literal(dir), removes)
	for i := range holders {
		holders[i] = a.floor.entry(&holders[i], name)
	}
	return holders
}

// locateFrom follows a path that is relative to dir, or absolute if dir is empty. It
// applies .. after it has followed links, as the kernel does.
func (f *Floor) locateFrom(dir, path string) spot {
	if dir == "" {
		dir = filepath.VolumeName(path) + string(filepath.Separator)
		path = path[len(dir)-1:]
	}
	if !strings.Contains(path, "..") {
		return f.locate(filepath.Join(dir, path))
	}
	at := dir
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		if part == ".." {
			direct, err := follow(at)
			if err == nil && isMagic(direct) {
				err = errMagic
			}
			if err != nil {
				return spot{path: filepath.ToSlash(filepath.Join(dir, path)), err: err}
			}
			at = filepath.Dir(direct)
			continue
		}
		at = filepath.Join(at, part)
	}
	return f.locate(at)
}

// mostMatches is how many matches of a pattern are recorded one by one. Of further
// matches, only those above ZoneWorkspace are recorded.
const mostMatches = 256

var errMatches = errors.New("there are too many files to check")

// matches returns the files that match a pattern now. If there are none, it returns an
// unknown file in the directory before the first wildcard.
func (a *analysis) matches(pattern string, do effect) []spot {
	var spots []spot
	for _, dir := range a.fixed(pattern) {
		m := matching{analysis: a, do: do, holders: map[string]spot{}}
		rest := pattern[len(fixedPart(pattern)):]
		m.in(dir, strings.Split(rest, string(filepath.Separator)))
		if _, err := os.Lstat(filepath.Join(dir, rest)); err == nil { // if nothing matches, the shell uses the pattern as a file name
			m.spots = append(m.spots, a.floor.locate(filepath.Join(dir, rest)))
		}
		if len(m.spots) == 0 || a.looks > mostLooks {
			other := a.floor.locate(filepath.Join(dir, "*"))
			if a.looks > mostLooks {
				other.err, other.below = errMatches, true
			}
			m.spots = append(m.spots, other)
		}
		spots = append(spots, m.spots...)
	}
	return spots
}

// matching is a search for the files that match a pattern.
type matching struct {
	*analysis
	do      effect
	spots   []spot
	holders map[string]spot // by path of the directory
}

// in searches a directory for the files that match the parts of a pattern.
func (m *matching) in(dir string, parts []string) {
	part := parts[0]
	if part == "**" && m.deepGlobs {
		m.anywhere(dir, parts)
		return
	}
	if !strings.ContainsAny(part, "*?[") {
		if m.looks++; len(parts) > 1 {
			m.in(filepath.Join(dir, part), parts[1:])
		} else if info, err := os.Lstat(filepath.Join(dir, part)); err == nil {
			m.hit(dir, part, info.Mode()&os.ModeSymlink != 0)
		}
		return
	}
	part = strings.ReplaceAll(part, "[!", "[^")
	if _, err := filepath.Match(part, ""); err != nil || strings.ContainsAny(part, `(\`) || strings.Contains(part, "[[") {
		part = strings.Repeat(".", strings.Count(part[:1], ".")) + "*" // * matches at least the same names
	}
	for _, e := range m.entriesOf(dir) {
		name := e.Name()
		if ok, _ := filepath.Match(part, name); !ok || name[0] == '.' && part[0] != '.' {
			continue
		}
		switch link := e.Type()&os.ModeSymlink != 0; {
		case len(parts) == 1:
			m.hit(dir, name, link)
		case link || e.IsDir():
			m.in(filepath.Join(dir, name), parts[1:])
		}
		if m.looks > mostLooks {
			return
		}
	}
}

// anywhere searches a directory, and all directories below it, for the parts after a **.
// It also follows links to directories, because older shells do.
func (m *matching) anywhere(dir string, parts []string) {
	if len(parts) > 1 {
		m.in(dir, parts[1:])
	}
	for _, e := range m.entriesOf(dir) {
		name, link := e.Name(), e.Type()&os.ModeSymlink != 0
		if name[0] == '.' {
			continue
		}
		if len(parts) == 1 {
			m.hit(dir, name, link)
		}
		switch {
		case e.IsDir():
			m.anywhere(filepath.Join(dir, name), parts)
		case link && len(parts) > 1:
			m.in(filepath.Join(dir, name), parts[1:])
		}
		if m.looks > mostLooks {
			return
		}
	}
}

// hit records a match. If the match is a link, hit also records its target.
func (m *matching) hit(dir, name string, link bool) {
	holder, ok := m.holders[dir]
	if !ok {
		holder = m.floor.locate(dir)
		m.holders[dir] = holder
	}
	if name == "" {
		m.spots = append(m.spots, holder)
		return
	}
	m.spots = append(m.spots, m.floor.entry(&holder, name))
	if link && m.do != removes {
		m.spots = append(m.spots, m.floor.locate(filepath.Join(dir, name)))
	}
}

// fixed returns the directories that fixedPart of a pattern leads to.
func (a *analysis) fixed(pattern string) []string {
	part := fixedPart(pattern)
	if filepath.IsAbs(part) {
		return []string{filepath.FromSlash(a.floor.locateFrom("", part).path)}
	}
	dirs := make([]string, len(a.dirs))
	for i, dir := range a.dirs {
		dirs[i] = filepath.FromSlash(a.floor.locateFrom(dir, part).path)
	}
	return dirs
}

// fixedPart returns the directories of a pattern that come before its first wildcard.
func fixedPart(pattern string) string {
	fixed := pattern[:strings.IndexAny(pattern+"*", "*?[")]
	return fixed[:strings.LastIndex(fixed, string(filepath.Separator))+1]
}

// listed records a read if the shell lists a directory outside the project to expand a
// pattern.
func (a *analysis) listed(w arg) {
	text := filepath.FromSlash(w.text)
	if !filepath.IsAbs(text) && !strings.Contains(text, "..") {
		return // this directory was judged before, for example by a cd
	}
	for _, dir := range a.fixed(text) {
		s := a.floor.locate(dir)
		if f := a.floor.judgePath(&s, reads, false); f.Zone > ZoneWorkspace {
			a.add(f)
		}
	}
}
