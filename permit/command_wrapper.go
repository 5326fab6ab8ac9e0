package permit

import "strings"

// wrapperCommands run another command, which follows their own options.
func wrapperCommands(t table) {
	t.add("env genv", envCommand)
	t.add("chrt", func(c *invoked) {
		o := c.options(c.args, "+* T= P= D= p! pid!")
		if isNumber(word(o.rest, 0)) { // the priority
			o.rest = o.rest[1:]
		}
		c.exec(o.rest)
	})
	t.add("prlimit", prlimitCommand)
	t.add("flock", flockCommand)
	t.add("watch", watchCommand)
	t.add("entr", func(c *invoked) {
		o := c.options(c.args, "+a c d n p r s z")
		if o.has("s") {
			c.child(spaced(o.rest))
			return
		}
		c.feed(replaced(o.rest, "/_", arg{text: "/_"}), arg{}, false)
	})
	t.add("script", scriptCommand)
	t.add("perf", perfCommand)
	t.add("busybox toybox", busyboxCommand)
	t.add("sudo doas pkexec", sudoCommand)
	t.add("sudoedit", func(c *invoked) {
		c.zone(ZoneMachine, "runs as another user")
		c.writeAll(c.options(c.args, "* u= g=").rest)
	})
	t.add("su runuser", suCommand)
	t.add("bwrap firejail proot cgexec daemonize start-stop-daemon chpst ssh-agent aws-vault", func(c *invoked) {
		c.zone(ZoneMachine, "runs a program in a separate environment")
		c.known(c.args)
		for i := range c.args { // the command follows options that the analysis does not know
			if a := c.args[i]; a.known && c.floor.commands.judges[base(a.text)] != nil {
				c.exec(c.args[i:])
				return
			}
		}
	})
}

// wrapper judges commands that run another command. The other command comes after the
// options and after a given number of words.
func wrapper(list string, words int) judge {
	return func(c *invoked) {
		o := c.options(c.args, list)
		c.known(o.rest[:min(words, len(o.rest))])
		c.exec(o.from(words))
	}
}

// machineWrapper is like wrapper, for commands that are themselves zone 5.
func machineWrapper(list string, words int) judge {
	return func(c *invoked) {
		o := c.options(c.args, list)
		c.zone(ZoneMachine, "runs a program with other rights or in another environment")
		c.exec(o.from(words))
	}
}

// envCommand judges env. Its words are variables and a command.
func envCommand(c *invoked) {
	o := c.options(c.args, "+i ignore-environment u= unset= 0 null C= chdir= S= split-string= v debug a=! argv0=! block-signal=? default-signal=? ignore-signal=? list-signal-handling P=! L=! U=!")
	words := o.rest
	if len(words) > 0 && words[0].known && words[0].text == "-" {
		words = words[1:]
	}
	for _, text := range o.values("S", "split-string") {
		if !text.known || strings.ContainsAny(text.text, "'\"\\$#") {
			c.unknown("cannot determine what it runs")
			c.child(text)
			return
		}
		var split []arg
		for w := range strings.FieldsSeq(text.text) {
			split = append(split, literal(w))
		}
		if o.has("v") || len(split) > 0 && strings.HasPrefix(split[0].text, "-") {
			c.unknown("cannot determine what it runs")
		}
		words = append(split, words...)
	}
	c.apart(func() {
		run := func() { c.exec(c.environ(words)) }
		if dir, ok := o.value("C", "chdir"); ok {
			c.in(dir, run)
			return
		}
		run()
	})
}

// environ records that leading assignments are environment variables of the command after
// them. It returns that command.
func (c *invoked) environ(words []arg) []arg {
	for len(words) > 0 && strings.Contains(words[0].text, "=") {
		w := words[0]
		name, value, _ := strings.Cut(w.text, "=")
		v := arg{text: value, known: w.isText()}
		w.use()
		c.setting(name, v)
		c.exports(name)
		if !v.known || !isInteger(value) {
			c.markDirty(name) // a shell may evaluate the value as arithmetic
		}
		words = words[1:]
	}
	return words
}

func prlimitCommand(c *invoked) {
	o := c.options(c.args, "+* p= pid= o= output=")
	if o.has("p", "pid") {
		c.zone(ZoneMachine, "changes another process")
	}
	c.exec(o.rest)
}

func flockCommand(c *invoked) {
	o := c.options(c.args, "+s shared x e exclusive n nb nonblock w= timeout= wait= u unlock o close c= command= E= conflict-exit-code= F no-fork verbose V h")
	if len(o.rest) > 0 && !isNumber(o.rest[0].text) {
		c.write(o.rest[0])
	}
	for _, text := range o.values("c", "command") {
		c.child(text)
	}
	words := o.from(1)
	if oneOf(word(words, 0), "-c --command") {
		c.child(spaced(words[1:]))
		return
	}
	c.exec(words)
}

func watchCommand(c *invoked) {
	o := c.options(c.args, "+b beep c color C no-color d=? differences=? e errexit g chgexit n= interval= p precise q= equexit= r no-rerun s= shotsdir=> t no-title w no-wrap x exec v")
	if o.has("x", "exec") {
		c.exec(o.rest)
	} else if len(o.rest) > 0 {
		c.child(spaced(o.rest))
	}
}

// scriptCommand judges script. It runs a command and saves the output. On BSD the command
// follows the file. On Linux the command is the value of -c.
func scriptCommand(c *invoked) {
	const list = "+*c= command= E= echo= I=> log-in=> O=> log-out=> B=> log-io=> T=> log-timing=> t=?> timing=?> m= logging-format= o= output-limit="
	o := c.options(c.args, list)
	c.zone(ZoneWorkspace, "")
	if len(o.rest) > 0 {
		c.write(o.rest[0])
	}
	texts := o.values("c", "command")
	if words := o.from(1); strings.HasPrefix(word(words, 0), "-") {
		texts = append(texts, c.options(words, list).values("c", "command")...)
	} else if len(words) > 0 {
		c.exec(words)
		return
	}
	for _, text := range texts {
		c.child(text)
	}
	if len(texts) == 0 {
		c.unknown("a shell runs its arguments or its input")
	}
}

func perfCommand(c *invoked) {
	c.known(c.args[:min(1, len(c.args))])
	switch word(c.args, 0) {
	case "report", "annotate", "script", "list", "diff", "version", "":
		o := c.options(c.args[min(1, len(c.args)):], "i=< input=< n stdio sort= g=? G no-children children percent-limit= fields= F= d= dsos= comms= c= S= symbols= symbol= header header-only f force v verbose q quiet "+
			"show-total-period U hide-unresolved demangle group tid= pid= percentage= l print-line no-source time= cpu= C= D dump-raw-trace I show-info max-stack= k=< vmlinux=<")
		if word(c.args, 0) == "script" && len(o.rest) > 0 {
			c.code(o.rest[0])
		}
		c.readAll(o.rest)
	case "stat", "record", "trace":
		o := c.options(c.args[1:], "+* e= o=> output=> F= p=! a! c= C= r= I= t=! call-graph= event=")
		c.zone(ZoneWorkspace, "")
		c.exec(o.rest)
	default:
		c.unknown("Belay does not know what this command does")
	}
}

func busyboxCommand(c *invoked) {
	switch first := word(c.args, 0); {
	case len(c.args) == 0 || first == "--list" || first == "--help":
	case strings.HasPrefix(first, "-"):
		c.zone(ZoneMachine, "changes the machine")
	default:
		c.exec(c.args)
	}
}

func sudoCommand(c *invoked) {
	c.zone(ZoneMachine, "runs as another user")
	o := c.options(c.args, "+A b B C= D= E e g= H h=? i K k l n N P p= R= r= S s T= t= U= u= V v a= c= L user= group= login shell chdir= preserve-env=? non-interactive stdin edit list "+
		"remove-timestamp reset-timestamp validate background prompt= host= close-from= role= type= chroot= command-timeout= other-user= disable-internal-agent keep-cwd")
	words := o.rest
	words = c.environ(words)
	switch {
	case o.has("e", "edit"):
		c.writeAll(words)
	case o.has("D", "chdir", "R", "chroot"):
		c.unknown("cannot determine where it runs")
		c.exec(words)
	default:
		c.exec(words)
	}
}

func suCommand(c *invoked) {
	c.zone(ZoneMachine, "runs as another user")
	o := c.options(c.args, "* c= command= session-command= s= shell= g= G= u= user= group= supp-group= w= whitelist-environment= l login m p preserve-environment f fast P pty")
	for _, text := range o.values("c", "command", "session-command") {
		c.child(text)
	}
	if o.has("u", "user") {
		c.exec(o.rest)
	}
	if !o.has("c", "command", "session-command") && c.stdin.known {
		c.child(c.stdin)
	}
}
