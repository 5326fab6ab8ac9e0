package permit

import "slices"

// unpacks says that the command puts files of unknown names into a directory. In the project's own
// directory there may be any among them that steers Belay, git or another program.
func (c *invoked) unpacks(dir arg) {
	c.zone(ZoneWorkspace, "")
	c.overwrite(dir)
	c.fillsHolder(dir)
	c.bringsLinks(c.name)
	top := dir.known && slices.ContainsFunc(c.spots(dir, reads), func(s spot) bool { return s.inside && s.rel == "." })
	if top || c.holdsSteering(dir) {
		c.confinedOr("it may contain files that control Belay, git or an editor: unpack it into a new directory")
	}
}

// confinedOr says that what the command does is unknown to files. In a sandbox that
// is like code of the project: what steers Belay and git cannot be changed there.
func (c *invoked) confinedOr(why string) {
	if c.confined {
		c.zone(ZoneBuild, why)
		return
	}
	c.unknown(why)
}

// snippet says that the command runs code that it is given. In a sandbox that is like code
// of the project.
func (c *invoked) snippet() {
	if c.confined {
		c.zone(ZoneBuild, "runs code that it is given")
		return
	}
	c.unknown("runs code that is not in a file of the project")
}
