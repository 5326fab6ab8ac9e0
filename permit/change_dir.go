package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// changeDirectory judges cd and pushd. If the directory does not exist now, cd may fail,
// or the line may create the directory first. So afterwards, the old and the new
// directory are both possible.
func changeDirectory(c *invoked) {
	c.disturbTrap()
	o := c.options(c.args, "L P e @ n")
	switch {
	case len(o.rest) == 0 && c.name == "cd":
		o.rest = []arg{{text: c.floor.home.path, known: c.floor.home.path != ""}}
	case len(o.rest) != 1:
		c.dirs = nil
		return
	}
	to := o.rest[0]
	if dirs := c.matchedDirectories(to); dirs != nil {
		c.read(to)
		c.dirs = dirs
		return
	}
	if !to.known || to.pattern || to.pipe || to.text == "-" || c.lost != "" {
		if to.text != "-" || !to.known {
			c.zone(ZoneMachine, "cannot determine which directory it changes to")
		}
		c.dirs = nil
		return
	}
	c.read(to)
	var dirs []string
	for _, dir := range c.destinations(to, o.has("P")) {
		dirs = append(dirs, dir)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			dirs = append(dirs, c.dirs...)
		}
	}
	c.dirs = directories(dirs)
}

// matchedDirectories returns the current directories and those that a pattern matches, as
// in for d in */; do cd "$d". It returns nil if the pattern matches none, or too many.
func (c *invoked) matchedDirectories(to arg) []string {
	if !to.known || !to.pattern || to.below || c.lost != "" || c.namesFiles() || c.moved != "" {
		return nil
	}
	dirs := slices.Clone(c.dirs)
	for _, s := range c.spots(to, reads) {
		if info, err := os.Stat(filepath.FromSlash(s.path)); err == nil && info.IsDir() {
			dirs = append(dirs, filepath.FromSlash(s.path))
		}
	}
	if len(dirs) == len(c.dirs) {
		return nil
	}
	return directories(dirs)
}

// destinations returns the directories that a cd may lead to. The shell removes .. from
// the path as written. With -P, or if the result does not exist, the shell follows links
// first. Without -P, destinations returns the results of both methods.
func (c *invoked) destinations(to arg, physical bool) []string {
	var dirs []string
	if spots := c.spots(to, reads); physical || strings.Contains(to.text, "..") {
		for i := range spots {
			dirs = append(dirs, filepath.FromSlash(spots[i].path))
		}
	}
	if physical {
		return dirs
	}
	from := c.dirs
	if filepath.IsAbs(filepath.FromSlash(to.text)) {
		from = []string{""}
	}
	for _, dir := range from {
		named := filepath.Clean(filepath.Join(dir, filepath.FromSlash(to.text)))
		if s := c.locate(named); !slices.Contains(dirs, named) {
			dirs = append(dirs, named)
			if f := c.floor.judgePath(&s, reads, false); f.Zone > ZoneWorkspace {
				c.add(f)
			}
		}
	}
	return dirs
}

// popDirectory judges popd. The analysis does not track the stack of directories, so the
// current directory is unknown afterwards.
func popDirectory(c *invoked) {
	c.disturbTrap()
	c.dirs = nil
}
