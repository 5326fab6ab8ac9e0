package permit

// unpacks says that the command puts files into a directory that cannot be determined.
func (c *invoked) unpacks(dir arg) {
	c.zone(ZoneWorkspace, "")
	c.overwrite(dir)
	c.bringsLinks(c.name)
	if c.holdsSteering(dir) {
		c.confinedOr("what it unpacks may replace what steers Belay or git")
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
