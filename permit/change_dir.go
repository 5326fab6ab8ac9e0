package permit

import (
	"os"
	"path/filepath"
	"slices"
)

// changeDirectory is cd and pushd. The shell stays where it is if there is no such
// directory, and the line may make one meanwhile: both count then.
func changeDirectory(c *invoked) {
	o := c.options(c.args, "L P e @ n")
	switch {
	case len(o.rest) == 0 && c.name == "cd":
		o.rest = []arg{{text: c.floor.home.path, known: c.floor.home.path != ""}}
	case len(o.rest) != 1:
		c.dirs = nil
		return
	}
	to := o.rest[0]
	if !to.known || to.pattern || to.pipe || to.text == "-" || c.lost != "" {
		if to.text != "-" || !to.known {
			c.zone(ZoneMachine, "it cannot be told which directory this leads to")
		}
		c.dirs = nil
		return
	}
	c.read(to)
	var dirs []string
	for _, s := range c.spots(to, reads) {
		dirs = append(dirs, filepath.FromSlash(s.path))
		if info, err := os.Stat(filepath.FromSlash(s.path)); err != nil || !info.IsDir() {
			dirs = append(dirs, c.dirs...)
		}
	}
	slices.Sort(dirs)
	if c.dirs = slices.Compact(dirs); len(c.dirs) > mostDirectories {
		c.dirs = nil
	}
}

// popDirectory is popd: where it leads is not followed.
func popDirectory(c *invoked) { c.dirs = nil }
