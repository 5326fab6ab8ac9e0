package permit

import (
	"path"
	"slices"
	"strings"
)

func fileCommands(t table) {
	t.add("rm grm", removeCommand)
	t.add("rmdir unlink trash trash-put", func(c *invoked) {
		for _, a := range c.options(c.args, "*").rest {
			c.remove(a)
		}
		c.zone(ZoneWorkspace, "")
	})
	t.add("shred srm", shredCommand)
	t.add("truncate gtruncate", truncateCommand)
	t.add("chmod gchmod", modeCommand)
	t.add("chown chgrp gchown", ownerCommand)
	t.add("dd gdd", copyBlocksCommand)
	t.add("rename prename", renameCommand)
}

func removeCommand(c *invoked) {
	o := c.options(c.args, "r R f i I v d recursive force interactive=? dir verbose one-file-system no-preserve-root preserve-root=? P W x help version")
	c.zone(ZoneWorkspace, "")
	recursive := o.has("r", "R", "recursive")
	if recursive && slices.ContainsFunc(o.rest, func(a arg) bool { return !c.isBuildOutput(a) }) {
		c.protect(destroyFiles, "removes whole directories")
	}
	for _, a := range o.rest {
		c.remove(a)
		if name := path.Base(a.text); a.pattern && !recursive && strings.Trim(name, "*.?") == "" {
			c.protect(destroyFiles, "removes all files of a directory")
		}
	}
	if o.has("no-preserve-root") {
		c.unknown("it may remove the root directory /")
	}
}

func shredCommand(c *invoked) {
	o := c.options(c.args, "* n= s= iterations= size= random-source=<")
	c.zone(ZoneWorkspace, "")
	c.protect(destroyFiles, "removes files permanently")
	for _, a := range o.rest {
		c.remove(a)
	}
}

func truncateCommand(c *invoked) {
	o := c.options(c.args, "* s= size= r=< reference=<")
	c.zone(ZoneWorkspace, "")
	many := len(o.rest) > 3
	for _, a := range o.rest {
		c.write(a)
		many = many || a.pattern
	}
	if many {
		c.protect(destroyFiles, "empties many files")
	}
}

func modeCommand(c *invoked) {
	o := c.options(c.args, "* reference=<")
	files := o.rest
	mode := ""
	if !o.has("reference", "r", "w", "x", "X", "s", "t") { // -x and similar may be a mode instead of an option
		mode, files = word(o.rest, 0), o.from(1)
	}
	c.zone(ZoneWorkspace, "")
	octal := strings.TrimLeft(mode, "0")
	if strings.Contains(mode, "s") && !strings.Contains(mode, "-s") || isNumber(mode) && len(octal) > 3 && octal[0] > '1' {
		c.zone(ZoneMachine, "makes a program run with its owner's rights")
	}
	c.writeTrees(files, o)
}

// writeTrees records that the command changes files, or with -R also everything below
// them.
func (c *invoked) writeTrees(files []arg, o *options) {
	for _, a := range files {
		if o.may("R", "recursive") {
			a.follows = a.follows || o.has("L")
			c.writeTree(a)
		} else {
			c.write(a)
		}
	}
}

func ownerCommand(c *invoked) {
	o := c.options(c.args, "* reference=< from=")
	files := o.from(1)
	if o.has("reference") {
		files = o.rest
	}
	c.zone(ZoneWorkspace, "")
	c.writeTrees(files, o)
}

// copyBlocksCommand judges dd. All its words have the form name=value.
func copyBlocksCommand(c *invoked) {
	c.known(c.args)
	for _, a := range c.args {
		name, value, _ := strings.Cut(a.text, "=")
		file := arg{text: value, known: a.known, pattern: a.pattern}
		switch name {
		case "if":
			c.read(file)
		case "of":
			c.zone(ZoneWorkspace, "")
			c.write(file)
		}
	}
}

// renameCommand judges rename. There are two programs with this name. One takes Perl
// code, the other takes a text and its replacement.
func renameCommand(c *invoked) {
	o := c.options(c.args, "* e=! E=!")
	c.zone(ZoneWorkspace, "")
	if first := word(o.rest, 0); strings.Trim(first, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._- ") != "" {
		c.unknown("Perl code computes the new names")
	}
	for _, a := range o.from(1) {
		c.remove(a)
	}
}
