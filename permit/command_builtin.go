package permit

import "strings"

// builtinCommands are those of the shell itself that set variables, or steer it.
func builtinCommands(t table) {
	t.add("exit return break continue shift logout times type help caller jobs fg bg disown umask ulimit dirs compopt suspend", harmless)
	t.add("set", setCommand)
	t.add("shopt setopt unsetopt", shoptCommand)
	t.add("read", func(c *invoked) {
		o := c.options(c.args, "* a= d= n= N= p= t= u= i= k=? q")
		c.sets(append(o.rest, o.values("a")...))
		c.forget(literal("REPLY"))
	})
	t.add("mapfile readarray", func(c *invoked) {
		o := c.options(c.args, "* C=$ d= n= O= s= u= c=")
		for _, a := range o.values("O", "s", "n", "c") {
			c.evaluate(a)
		}
		c.sets(append(o.rest, literal("MAPFILE")))
	})
	t.add("getopts", func(c *invoked) {
		if len(c.args) > 1 {
			c.sets(c.args[1:2])
		}
		c.forget(literal("OPTARG"), literal("OPTIND"))
	})
	t.add("unset", unsetCommand)
	t.add("export declare typeset local readonly integer float", declareCommand)
	t.add("let", func(c *invoked) {
		for _, a := range c.args {
			c.evaluate(a)
		}
		c.forget(arg{})
	})
	t.add("wait", func(c *invoked) {
		if o := c.options(c.args, "* p= n f"); o.has("p") {
			c.sets(o.values("p"))
		}
	})
	t.add("command", commandCommand)
	t.add("builtin", func(c *invoked) { c.instead(c.options(c.args, "+").rest) })
	t.add("exec", func(c *invoked) { c.instead(c.options(c.args, "+c l a=").rest) })
	t.add("hash rehash", func(c *invoked) {
		if o := c.options(c.args, "* p= r d t l"); o.has("p") {
			c.unknown("a command means another program from here on")
			c.lost = "a command was given another meaning"
		}
	})
	t.add("enable", func(c *invoked) {
		if o := c.options(c.args, "* f=! a d n p s"); len(o.rest) > 0 || o.has("f") {
			c.unknown("commands mean something else from here on")
			c.lost = "a command was given another meaning"
		}
	})
	t.add("bind complete compdef bindkey zle zmodload autoload emulate", opaque("it changes what the shell does later"))
	t.add("compgen", func(c *invoked) { c.readAll(c.options(c.args, "* C=$ F=! W=! A= G=< P= S= X= o=").rest) })
	t.add("fc", func(c *invoked) {
		if o := c.options(c.args, "* e=! s l n r"); !o.has("l") {
			c.unknown("it runs an earlier command again")
		}
	})
	t.add("history", func(c *invoked) {
		if o := c.options(c.args, "* c d= a=? n=? r=? w=? p s"); o.has("c", "d", "a", "n", "r", "w", "s") {
			c.zone(ZoneMachine, "changes the user's history of commands")
		}
	})
}

// setCommand is set. With -k words behind a command are assignments too.
func setCommand(c *invoked) {
	for i, a := range c.args {
		switch {
		case a.known && a.text == "--" || a.known && !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") && !strings.HasSuffix(word(c.args, max(i-1, 0)), "o"):
			return
		case !a.known, strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "k"), a.text == "keyword":
			c.unknown("words behind a command may be assignments from here on")
			c.lose("words may be assignments")
			return
		}
	}
}

// shoptCommand is shopt. Some options have patterns match what they else do not.
func shoptCommand(c *invoked) {
	for _, a := range c.args {
		if !a.known || oneOf(strings.ReplaceAll(strings.ToLower(a.text), "_", ""), "dotglob globdots expandaliases aliases") {
			c.unknown("words mean something else from here on")
		}
	}
}

func unsetCommand(c *invoked) {
	o := c.options(c.args, "f v n")
	for _, a := range o.rest {
		if !a.known || !c.isVariable(a.text) && !c.isFunction(a.text) {
			c.unknown("the index of a variable is evaluated")
		}
		if c.isFunction(a.text) || !a.known {
			c.unknown("a function is taken away")
			c.undefine(a.text)
		}
		if c.blind || isOwn(a.text) || !a.known {
			c.forget(a)
		} else if !strings.Contains(a.text, "[") {
			c.count(a.text) // nothing counts as zero
		}
	}
}

// declareCommand is export and the like where they are called through another command.
func declareCommand(c *invoked) {
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "-") && a.known {
			if strings.Contains(a.text, "n") {
				c.darken() // a name for another variable
			}
			continue
		}
		name, value, given := strings.Cut(a.text, "=")
		name = strings.TrimSuffix(name, "+")
		if strings.ContainsAny(word(c.args, 0), "iluc") && strings.HasPrefix(word(c.args, 0), "-") || c.name == "integer" {
			c.evaluate(arg{text: value, known: a.known})
			c.darken() // what it holds from here on is not followed
		}
		if given || !a.known {
			c.setting(name, arg{text: value, known: a.known})
		}
		c.sets([]arg{{text: name, known: a.known}})
	}
}

// setting says that a variable is set for a command, or for the rest of the line.
func (c *invoked) setting(name string, value arg) {
	c.steered(name, value)
	if why, bad := hazardousVariable(name, value); bad {
		if c.loadsOwn(name, value) {
			c.zone(ZoneBuild, "programs load code of the project")
			return
		}
		c.unknown(why)
		if strings.HasPrefix(name, "BELAY_") {
			c.protect(selfCommand, why)
		}
	}
}

// commandCommand is command, which passes functions over, or says what a word means.
func commandCommand(c *invoked) {
	if o := c.options(c.args, "+p v V"); !o.has("v", "V") {
		c.instead(o.rest)
	}
}

// instead runs a command in the shell itself, passing functions over.
func (c *invoked) instead(argv []arg) {
	if len(c.funcs) > 0 {
		c.funcs = cloned(c.funcs) // it may be given more
	}
	c.here(argv)
}
