package permit

// interpreterCommands run scripts. A script file counts as code of the project. Code on
// the command line or from standard input is unknown.
func interpreterCommands(t table) {
	t.add("php php8 php7", phpCommand)
	t.add("R", func(c *invoked) {
		o := c.options(c.args, "* e=! f=< file=< g= gui= version help")
		if o.has("version", "help") {
			return
		}
		c.unknown("runs code that is not in a file of the project")
	})
	t.add("tclsh wish guile racket sbcl clisp scheme csi chez ocaml utop ghci runghc runhaskell clojure clj bb janet jconsole octave matlab maxima gp swipl gnuplot sage pwsh-preview dyalog", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "+*e=! eval=! c=! command=! x=! l=< load=< f=< r=! R=! g=! p=! A! M! X! batch")
		c.runScript(o.rest)
	})
	t.add("gdb lldb cgdb rr", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("a debugger can run any command")
		}
	})
	t.add("wasmtime wasmer wasm3 qemu-x86_64 qemu-aarch64 wine mono", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "+*dir= mapdir= env= L=< cpu=")
		c.runScript(o.rest)
		for _, dir := range o.values("dir", "mapdir") {
			c.mayTouch(dir)
		}
	})
	t.add("open xdg-open gio start code code-insiders cursor subl atom idea goland pycharm webstorm zed gnome-open kde-open sensible-browser www-browser lynx w3m links elinks firefox chromium google-chrome",
		func(c *invoked) {
			c.known(c.args)
			c.zone(ZoneMachine, "opens a program of the user's desktop")
			c.denyMetadata(c.args)
		})
	t.add("tmux screen zellij byobu dtach abduco", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("runs the command in another shell, which Belay does not check")
		}
	})
}

func phpCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+*r=% run=% B=! R=! E=! process-begin=! process-code=! process-end=! f= file= F=< process-file=< S=! server=! t= docroot= a! interactive! c=! php-ini=! d=! define=! z=! "+
		"zend-extension=! l syntax-check v version m modules i info ini")
	switch {
	case o.has("r", "run", "B", "R", "E", "S", "server"):
	case o.has("v", "version", "m", "modules", "i", "info", "ini") && len(o.rest) == 0:
	case o.has("l", "syntax-check"):
		c.readAll(append(o.rest, o.values("f", "file")...))
	case o.has("f", "file"):
		c.runScript(o.values("f", "file"))
	default:
		c.runScript(o.rest)
	}
}

// editorCommands are editors, which can run any command.
func editorCommands(t table) {
	t.add("vi vim nvim view emacs nano pico joe micro kak hx helix", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		c.unknown("an editor can run any command")
		for _, a := range c.args {
			if a.known && a.text != "" && a.text[0] != '-' && a.text[0] != '+' {
				c.mayTouch(a)
			}
		}
	})
}
