package permit

// interpreterCommands run code that is written for them: a file is code of the project,
// what is on the line or read cannot be determined.
func interpreterCommands(t table) {
	t.add("perl perl5", scriptRunner("+*e=% E=% i=?% n% p% M=! m=! I=< x=?! d=?! C=? D=? l=? 0=? F=! V=? v c W w t T u U s S a"))
	t.add("ruby", scriptRunner("+*e=% i=?% n% p% r=! I=< C=! x=?! E= K=? T=? W=? F= S v w c y enable= disable= encoding= external-encoding= internal-encoding= yjit jit"))
	t.add("php php8 php7", phpCommand)
	t.add("lua luajit lua5.1 lua5.3 lua5.4 texlua", scriptRunner("+*e=% l=! i! v W j=! b=!"))
	t.add("Rscript littler", scriptRunner("+*e=% default-packages="))
	t.add("R", func(c *invoked) {
		o := c.options(c.args, "* e=! f=< file=< g= gui= version help")
		if o.has("version", "help") {
			return
		}
		c.unknown("runs code that is not in a file of the project")
	})
	t.add("julia", scriptRunner("+*e=% eval=% E=% print=% L=< load=< J=< sysimage=< C= cpu-target= t= threads= p= procs= machine-file=< project=?< color= code-coverage=?"))
	t.add("elixir iex", scriptRunner("+*e=% eval=% rpc-eval=! r=< require=< pr=< S! sname= name= cookie= remsh=! dot-iex=< v version"))
	t.add("erl escript", scriptRunner("+*-eval=! run=! s=! noshell! pa=< pz=< config=< args_file=!"))
	t.add("tclsh wish guile racket sbcl clisp scheme csi chez ocaml utop ghci runghc runhaskell clojure clj bb janet jconsole octave matlab maxima gp swipl gnuplot sage pwsh-preview dyalog", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, "+*e=! eval=! c=! command=! x=! l=< load=< f=< r=! R=! g=! p=! A! M! X! batch")
		c.runScript(o.rest)
	})
	t.add("expect", scriptRunner("+*c=! f=< b=< d D="))
	t.add("osascript automator shortcuts", at(ZoneMachine, "steers other programs of the machine"))
	t.add("gdb lldb cgdb rr", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("a debugger runs what it is told")
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
			c.shuns(c.args)
		})
	t.add("tmux screen zellij byobu dtach abduco", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("has another shell run what it is given")
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

// editorCommands are editors: their commands run others.
func editorCommands(t table) {
	t.add("vi vim nvim view vimdiff ex ed red emacs emacsclient nano pico joe jed micro mg kak hx helix ne tilde mcedit", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		c.unknown("an editor runs what it is told")
		for _, a := range c.args {
			if a.known && a.text != "" && a.text[0] != '-' && a.text[0] != '+' {
				c.mayTouch(a)
			}
		}
	})
}
