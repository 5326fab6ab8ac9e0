package permit

import "strings"

// builtinCommands are builtins that set variables or change the state of the shell.
func builtinCommands(t table) {
	t.add("cd pushd", changeDirectory)
	t.add("popd", popDirectory)
	t.add("jobs", jobsCommand)
	t.add("set", setCommand)
	t.add("shopt setopt unsetopt", shoptCommand)
	t.add("read", func(c *invoked) {
		o := c.options(c.args, "* a= d= n= N= p= t= u= i= k=? q")
		c.sets(append(o.rest, o.values("a")...))
		c.readName(o)
		c.fills(o.values("a"))
		c.forget(literal("REPLY"))
	})
	t.add("mapfile readarray", func(c *invoked) {
		o := c.options(c.args, "* C=$ d= n= O= s= u= c=")
		for _, a := range o.values("O", "s", "n", "c") {
			c.evaluate(a)
		}
		c.sets(append(o.rest, literal("MAPFILE")))
		c.fills(o.rest)
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
		for _, a := range c.args { // an argument may be a process number
			if a.counts {
				return
			}
		}
		if o := c.options(c.args, "* p= n f"); o.has("p") {
			c.sets(o.values("p"))
		}
	})
	t.add("command", commandCommand)
	t.add("builtin", func(c *invoked) { c.instead(c.options(c.args, "+").rest) })
	t.add("exec", func(c *invoked) {
		o := c.options(c.args, "+c l a=!")
		c.instead(o.rest)
	})
	t.add("hash rehash", func(c *invoked) {
		if o := c.options(c.args, "* p= r d t l"); o.has("p") {
			c.unknown("after this, a command name runs another program")
			c.lost = "an earlier command changed what a command name runs"
		}
	})
	t.add("enable", func(c *invoked) {
		if o := c.options(c.args, "* f=! a d n p s"); len(o.rest) > 0 || o.has("f") {
			c.unknown("after this, command names may run other programs")
			c.lost = "an earlier command changed what a command name runs"
		}
	})
	t.add("compgen", func(c *invoked) { c.readAll(c.options(c.args, "* C=$ F=! W=! A= G=< P= S= X= o=").rest) })
	t.add("fc", func(c *invoked) {
		if o := c.options(c.args, "* e=! s l n r"); !o.has("l") {
			c.unknown("it runs an earlier command again")
		}
	})
	t.add("history", func(c *invoked) {
		if o := c.options(c.args, "* c d= a=? n=? r=? w=? p s"); o.has("c", "d", "a", "n", "r", "w", "s") {
			c.zone(ZoneMachine, "changes the user's command history")
		}
	})
}

// jobsCommand judges jobs, which lists background jobs. With -x it runs a command.
func jobsCommand(c *invoked) {
	o := c.options(c.args, "+l n p r s x")
	if !o.has("x") {
		c.usesAll()
		return
	}
	c.unknown("it runs a command with process numbers as arguments")
	if len(o.rest) > 0 {
		c.call(o.rest, c.stdin, c.piped)
	}
}

// setCommand judges set. The words after its options become $1, $2 and so on.
func setCommand(c *invoked) {
	defer c.usesAll()
	for i := 0; i < len(c.args); i++ {
		a := c.args[i]
		switch {
		case !a.known:
			c.shellOption(a)
			return
		case a.text == "--" || a.text == "-" || a.text == "" || a.text[0] != '-' && a.text[0] != '+':
			return
		}
		for _, letter := range a.text[1:] {
			if letter != 'o' {
				c.shellOption(literal(a.text[:1] + string(letter)))
				continue
			}
			if i++; i < len(c.args) {
				c.shellOption(literal(a.text[:1] + "o " + c.args[i].text))
			}
		}
	}
}

// readName records that the variable of a read holds a file name that a search in the
// project has found, as in git ls-files | while read -r f.
func (c *invoked) readName(o *options) {
	if !c.piped || len(o.rest) != 1 || !o.rest[0].isText() || !isName(o.rest[0].text) || !o.has("r") || len(o.given) != 1 || c.names.hidden || !c.readsNames(false) {
		return
	}
	pattern := c.names.pattern
	if pattern == "" || strings.ContainsAny(pattern, "/\\[") {
		if _, steers := c.surprises(c.names.starts); steers {
			return
		}
		pattern = "*"
	}
	c.set(o.rest[0].text, arg{text: "./" + pattern, known: true, pattern: true, below: true, follows: true})
}

// These shell options do not change how the shell reads a line.
const (
	plainSetLetters = "euxvCETmbhn"
	plainSetNames   = "errexit nounset xtrace verbose noclobber errtrace functrace monitor notify hashall noexec pipefail vi emacs ignoreeof nolog interactive-comments"
	plainShopts     = "globstar extglob nullglob failglob inherit_errexit xpg_echo checkwinsize checkhash checkjobs cmdhist lithist histappend huponexit execfail globskipdots " +
		"globasciiranges assoc_expand_once patsub_replacement gnu_errfmt mailwarn no_empty_cmd_completion progcomp promptvars hostcomplete"
)

// shellOption judges an option of set, such as -e, +x or -o pipefail. Many options change
// how the shell reads words, names and commands.
func (c *invoked) shellOption(a arg) {
	name, long := strings.CutPrefix(strings.TrimLeft(a.text, "-+"), "o ")
	switch {
	case !a.known:
	case long && oneOf(name, plainSetNames), !long && strings.Contains(plainSetLetters, name) && len(name) == 1:
		return
	case a.text == "-a" || a.text == "-o allexport":
		c.exported = everything
		return
	case oneOf(a.text, "-B +a +f +k +H +P +t -p") || strings.HasPrefix(a.text, "+o ") && oneOf(name, "allexport noglob keyword histexpand history physical onecmd posix"):
		return // this is already the default
	}
	c.unknown("this option changes how the shell reads the line: " + shown(a.text))
	c.lose("an earlier command changed a shell option")
}

// shoptCommand judges shopt. An option that is not in plainShopts or plainSetNames may
// change how the shell reads the line.
func shoptCommand(c *invoked) {
	defer c.usesAll()
	switches := false
	for _, a := range c.args {
		switches = switches || !a.known || strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "suo")
	}
	for _, a := range c.args {
		c.deepGlobs = c.deepGlobs || switches && a.text == "globstar"
		if !switches || a.known && (oneOf(a.text, plainShopts) || oneOf(a.text, plainSetNames) || strings.HasPrefix(a.text, "-") && !strings.Contains(a.text, "_")) {
			continue
		}
		c.unknown("after this, the shell may read the line differently")
		c.lose("an earlier command changed a shell option")
	}
}

func unsetCommand(c *invoked) {
	o := c.options(c.args, "f v n")
	for _, a := range o.rest {
		if !a.known || !c.isVariable(a.text) && !c.isFunction(a.text) {
			c.unknown("the shell evaluates the index of a variable, which may run commands")
		}
		if c.isFunction(a.text) || !a.known {
			c.unknown("removes a function")
			c.undefine(a.text)
		}
		c.vanishes(a.text)
		if c.anyAlias || isOwn(a.text) || !a.known {
			c.forget(a)
		} else if !strings.Contains(a.text, "[") {
			c.count(a.text) // an empty value counts as zero
		}
	}
}

// declareCommand judges export and similar commands in sh, or if another command runs
// them. In bash, analysis.declare judges them.
func declareCommand(c *invoked) {
	d := declaration{analysis: c.analysis, variant: c.name}
	for _, a := range c.args {
		if !d.option(a) {
			d.text(a)
		}
	}
	c.usesAll()
}

// setting records that a program runs with an environment variable, as env does.
func (c *invoked) setting(name string, value arg) {
	c.steered(name, value)
	h := hazardOf(name, value)
	switch {
	case h.zone == ZoneSafe:
	case h.zone == ZoneMachine && c.loadsOwn(name, value):
		c.zone(ZoneBuild, "programs load code of the project")
	case h.zone == ZoneMachine:
		c.unknown(h.why)
		if strings.HasPrefix(name, "BELAY_") {
			c.protect(selfCommand, h.why)
		}
	default:
		c.zone(h.zone, h.why)
	}
}

// commandCommand judges command. It runs a command without looking for functions, or
// shows what a name means (-v, -V).
func commandCommand(c *invoked) {
	if o := c.options(c.args, "+p v V"); !o.has("v", "V") {
		c.instead(o.rest)
	}
}

// instead judges a command that the shell runs without looking for functions.
func (c *invoked) instead(argv []arg) {
	if len(c.funcs) > 0 {
		c.funcs = cloned(c.funcs) // c.here may change the map
	}
	c.here(argv)
}
