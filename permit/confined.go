package permit

import "slices"

// unpacks records that the command puts files with unknown names into a directory. In the
// top directory of the project, one of these files may control Belay, git or another
// program.
func (c *invoked) unpacks(dir arg) {
	c.zone(ZoneWorkspace, "")
	c.overwrite(dir)
	c.fillsHolder(dir)
	c.bringsLinks(c.name)
	top := dir.known && slices.ContainsFunc(c.spots(dir, reads), func(s spot) bool { return s.inside && s.rel == "." })
	if top || c.holdsSteering(dir) {
		c.confinedOr("the new files may control Belay, git or an editor: use a new directory")
	}
}

// confinedOr records that the command may change any file of the project. In a sandbox
// this counts as running code of the project, because the sandbox protects the files that
// control Belay and git. Without a sandbox the command is unknown.
func (c *invoked) confinedOr(why string) {
	if c.confined {
		c.zone(ZoneBuild, why)
		return
	}
	c.unknown(why)
}

// snippet records that the command runs code from its arguments or its input. In a
// sandbox this counts as running code of the project. Without a sandbox the command is
// unknown.
func (c *invoked) snippet() {
	if c.confined {
		c.zone(ZoneBuild, "runs code from its arguments or its input")
		return
	}
	c.unknown("runs code that is not in a file of the project")
}
