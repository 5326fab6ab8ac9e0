package permit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// errLooks says that a directory was not searched for links.
var errLooks = errors.New("the directory has too many files to look for links")

// readFollowing records that the command reads everything below some directories. If
// follows is set, the command also follows links there, as grep -R, tar -h and cp -rL do.
func (c *invoked) readFollowing(args []arg, follows bool) {
	for _, a := range args {
		a.follows = a.follows || follows
		c.readTree(a)
	}
}

// outward returns the links below a directory that lead out of the project. If there are
// too many files, it adds a spot with an error.
func (a *analysis) outward(dir string) []spot {
	if known, ok := a.links[dir]; ok {
		return known
	}
	var spots []spot
	var look func(dir string)
	look = func(dir string) {
		for _, e := range a.entriesOf(dir) {
			name := filepath.Join(dir, e.Name())
			switch {
			case e.Type()&fs.ModeSymlink != 0:
				if s := a.floor.locate(name); !s.inside && !s.extra {
					spots = append(spots, s)
				}
			case e.IsDir() && !strings.HasSuffix(filepath.ToSlash(name), ".git/objects"):
				look(name)
			}
			if a.looks > mostLooks || len(spots) > mostMatches {
				return
			}
		}
	}
	look(dir)
	if a.looks > mostLooks {
		s := a.floor.locate(dir)
		s.err = errLooks
		spots = append(spots, s)
	}
	if a.links == nil {
		a.links = map[string][]spot{}
	}
	a.links[dir] = spots
	return spots
}

// followed returns the links that a command follows below a path. The command also reads
// the targets of these links.
func (a *analysis) followed(w arg, spots []spot) []spot {
	var more []spot
	for i := range spots {
		dir := filepath.FromSlash(spots[i].path)
		if w.below && !w.pattern {
			dir = filepath.Dir(dir) // the word means files at any depth
		}
		if spots[i].inside || spots[i].extra {
			more = append(more, a.outward(dir)...)
		}
	}
	if w.pattern && w.below {
		for _, dir := range a.fixed(filepath.FromSlash(w.text)) {
			more = append(more, a.outward(dir)...)
		}
	}
	return more
}

// bringsLinks records that the command creates files that its arguments do not name. Some
// of them may be links, so it is unknown where paths of the project lead afterwards.
func (a *analysis) bringsLinks(what string) { a.bringsLinksTo(what, "") }

// bringsLinksTo is like bringsLinks, but all files are below a new directory of the
// project.
func (a *analysis) bringsLinksTo(what, dir string) {
	a.disturbTrap()
	if a.moved == "" {
		a.moved, a.movedIn = what, dir
	} else if a.movedIn != dir {
		a.movedIn = ""
	}
}

// bringsCopies records that the command copies files to another directory. In the new
// directory, relative links among these files lead to other files.
func (c *invoked) bringsCopies(from []arg) {
	for _, w := range from {
		if !w.known || w.pipe {
			continue
		}
		spots := c.spots(w, removes)
		if !w.pattern {
			spots = c.entries(w)
		}
		for i := range spots {
			if c.hasLinks(filepath.FromSlash(spots[i].path)) {
				c.bringsLinks(c.name)
				return
			}
		}
	}
}

// hasLinks reports whether a path is a link, contains a link, or does not exist and may
// become a link.
func (c *invoked) hasLinks(path string) bool {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return slices.ContainsFunc(c.found, makesLinks)
	case info.Mode()&fs.ModeSymlink != 0:
		return true
	case !info.IsDir():
		return false
	}
	links := false
	var look func(dir string)
	look = func(dir string) {
		for _, e := range c.entriesOf(dir) {
			links = links || e.Type()&fs.ModeSymlink != 0 || c.looks > mostLooks
			if e.IsDir() && !links {
				look(filepath.Join(dir, e.Name()))
			}
		}
	}
	look(path)
	return links
}

// makesLinks reports whether a finding is a command that makes links.
func makesLinks(f Finding) bool {
	if f.Kind != KindCommand || len(f.words) == 0 {
		return false
	}
	switch base(f.words[0]) {
	case "ln", "gln", "link":
		return true
	case "cp", "gcp":
		return slices.ContainsFunc(f.words, func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "s") })
	default:
		return false
	}
}

// mayBeReplaced reports whether an earlier command may have replaced a path with a link.
// If so, it records a finding.
func (a *analysis) mayBeReplaced(w arg, s *spot, do effect) bool {
	if a.moved == "" || a.tracked || !s.inside || s.rel == "." && !w.follows && !w.pattern || do == removes && !strings.Contains(s.rel, "/") ||
		a.movedIn != "" && !strings.HasPrefix(s.rel, a.movedIn+"/") {
		return false
	}
	kind := KindRead
	if do != reads {
		kind = KindWrite
	}
	a.add(Finding{
		Kind: kind, Subject: s.rel, Zone: ZoneMachine, does: do, opaque: true,
		Why: a.moved + " may have replaced this path with a link: run the commands separately",
	})
	return true
}

// asTracked calls do for paths from git's index. git does not follow links there.
func (g *git) asTracked(do func()) {
	before := g.tracked
	g.tracked = true
	do()
	g.tracked = before
}
