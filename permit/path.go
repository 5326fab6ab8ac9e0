package permit

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect goes through a redirection. It returns what the command reads, if it
// says that.
func (a *analysis) redirect(r *syntax.Redirect) (stdin arg, in bool) {
	switch {
	case (r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc) && r.Hdoc == nil:
		return literal(""), true
	case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
		return a.value(r.Hdoc), true
	case r.Op == syntax.WordHdoc:
		return a.value(r.Word), true
	}
	targets := a.fields(r.Word)
	if len(targets) != 1 {
		a.doubt(a.written(r.Word), "it cannot be told where this leads")
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

// path notes that something is done to a path, as a command sees it.
func (a *analysis) path(w arg, do effect) {
	switch {
	case w.pipe, w.known && w.text == "-" && do == reads:
		return
	case !w.known:
		kind := KindRead
		if do != reads {
			kind = KindWrite
		}
		a.add(Finding{Kind: kind, Subject: w.text, Zone: ZoneMachine, Why: "it cannot be told which path this is", opaque: true})
		return
	case w.text == "":
		return
	}
	if w.pattern && do >= rewrites {
		for _, dir := range a.fixed(filepath.FromSlash(w.text)) { // most of what is in it goes
			s := a.floor.locate(dir)
			if why := a.floor.ruinous(&s, do); why != "" {
				a.add(Finding{Kind: KindWrite, Subject: w.text, Zone: ZoneNever, Why: why})
				return
			}
		}
	}
	spots := a.spots(w, do)
	if do == removes && !w.pattern {
		spots = a.entries(w)
	}
	if spots == nil {
		a.doubt(w.text, "it cannot be told in which directory this is")
		return
	}
	for i, s := range spots {
		if slices.ContainsFunc(spots[:i], func(other spot) bool { return other.path == s.path }) {
			continue
		}
		a.add(a.floor.judgePath(&s, do, false))
	}
}

// mayTouch notes that something may be done to a path, if that matters.
func (a *analysis) mayTouch(w arg) {
	if w.text == "" || strings.ContainsAny(w.text, "\n\x00") {
		return
	}
	for _, s := range a.spots(w, changes) {
		if f := a.floor.judgePath(&s, changes, false); f.Zone > ZoneWorkspace {
			a.add(f)
		}
	}
}

// spots are where a path may lead; nil if that cannot be told.
func (a *analysis) spots(w arg, do effect) []spot {
	text := filepath.FromSlash(w.text)
	if w.pattern {
		return a.matches(text, do)
	}
	if filepath.IsAbs(text) {
		return []spot{a.floor.locate(text)}
	}
	spots := make([]spot, len(a.dirs))
	for i, dir := range a.dirs {
		spots[i] = a.floor.locateFrom(dir, text)
	}
	if len(spots) == 0 {
		return nil
	}
	return spots
}

// entries are what a path names itself: a link and not what it leads to, unless a
// slash at the end says so.
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

// locateFrom follows a path that is relative to a directory. Its .. are taken behind
// links, as the kernel does.
func (f *Floor) locateFrom(dir, path string) spot {
	if !strings.Contains(path, "..") {
		return f.locate(filepath.Join(dir, path))
	}
	at := dir
	for part := range strings.SplitSeq(path, string(filepath.Separator)) {
		if part == ".." {
			direct, err := follow(at)
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

// mostMatches is how many files a pattern is followed to.
const mostMatches = 256

// matches are where a pattern leads now, or else the directories that its fixed part
// names.
func (a *analysis) matches(pattern string, do effect) []spot {
	var spots []spot
	for _, dir := range a.fixed(pattern) {
		names, err := filepath.Glob(filepath.Join(dir, pattern[len(fixedPart(pattern)):]))
		if err != nil || len(names) == 0 || len(names) > mostMatches {
			spots = append(spots, a.floor.locate(filepath.Join(dir, "*")))
			continue
		}
		hidden := strings.HasPrefix(filepath.Base(pattern), ".")
		for _, name := range names {
			if hidden || !strings.HasPrefix(filepath.Base(name), ".") {
				holder := a.floor.locate(filepath.Dir(name))
				spots = append(spots, a.floor.entry(&holder, filepath.Base(name)))
				if target := a.floor.locate(name); target.path != spots[len(spots)-1].path && do != removes {
					spots = append(spots, target)
				}
			}
		}
	}
	return spots
}

// fixed are the directories that the fixed part of a pattern names.
func (a *analysis) fixed(pattern string) []string {
	part := fixedPart(pattern)
	if filepath.IsAbs(part) {
		return []string{a.floor.locate(part).path}
	}
	dirs := make([]string, len(a.dirs))
	for i, dir := range a.dirs {
		dirs[i] = filepath.FromSlash(a.floor.locateFrom(dir, part).path)
	}
	return dirs
}

// fixedPart is the beginning of a pattern up to the last separator in front of what
// varies.
func fixedPart(pattern string) string {
	fixed := pattern[:strings.IndexAny(pattern+"*", "*?[")]
	return fixed[:strings.LastIndex(fixed, string(filepath.Separator))+1]
}

// listed notes that the shell looks through a directory for the sake of a pattern, if
// that is outside.
func (a *analysis) listed(w arg) {
	text := filepath.FromSlash(w.text)
	if !filepath.IsAbs(text) && !strings.Contains(text, "..") {
		return // where the line is was judged when it went there
	}
	for _, dir := range a.fixed(text) {
		s := a.floor.locate(dir)
		if f := a.floor.judgePath(&s, reads, false); f.Zone > ZoneWorkspace {
			a.add(f)
		}
	}
}
