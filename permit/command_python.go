package permit

import (
	"fmt"
	"strings"
)

func pythonCommands(t table) {
	t.add("python python2 python3 pypy pypy3 python2.7", pythonCommand)
	for minor := 6; minor < 20; minor++ {
		t.add(fmt.Sprintf("python3.%d", minor), pythonCommand)
	}
	t.add("pip pip3 pip2", pipCommand)
	t.add("ipython ipython3 jupyter bpython ptpython", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("runs its input as code")
		}
	})
	t.add("pytest py.test mypy pyright pylint flake8 pyflakes pycodestyle pydocstyle bandit vulture coverage sphinx-build mkdocs behave stubgen cython hypothesis pyre pytype nosetests trial", pythonTool)
	t.add("black ruff isort autopep8 yapf autoflake pyupgrade docformatter", pythonFormatter)
	t.add("pipx", byVerb("", at(ZoneMachine, "installs or removes programs"), map[string]judge{"list environment --version help": harmless, "run": opaque("fetches a program and runs it")}))
	t.add("poetry pdm hatch pipenv rye", projectCommand)
	t.add("uv", uvCommand)
	t.add("uvx", func(c *invoked) {
		if !asksOnly(c) {
			c.unknown("fetches a program and runs it")
		}
	})
	t.add("conda mamba micromamba", condaCommand)
	t.add("twine flit", func(c *invoked) {
		o := c.options(c.args, "* r= repository= repository-url= u= p= c= config-file=<")
		switch word(o.rest, 0) {
		case "check", "build", "":
			c.zone(ZoneBuild, "builds the project")
			c.readAll(o.from(1))
		default:
			c.publishes("publishes")
			c.readAll(o.from(1))
		}
	})
}

// pythonCommand judges python. It runs a file, a module or code.
func pythonCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+b B d E h i I O OO P q s S u v V x c=. m=. W= X= t R J check-hash-based-pycs= help version help-all help-env help-xoptions")
	switch {
	case o.has("c"):
		c.snippet()
	case o.has("m"):
		module, _ := o.value("m")
		if !o.has("I", "P") { // python prefers a file of the project with that name
			c.zone(ZoneBuild, "runs code of the project")
		}
		c.pythonModule(module, o.rest)
	case o.has("h", "V", "help", "version", "help-all", "help-env", "help-xoptions") && len(o.rest) == 0:
	default:
		c.runScript(o.rest)
	}
}

func (c *invoked) pythonModule(module arg, words []arg) {
	if !module.known {
		c.unknown("cannot determine which module it runs")
		return
	}
	switch name := module.text; {
	case oneOf(name, "pip pytest mypy black ruff isort flake8 pylint coverage autopep8 yapf twine virtualenv pipx poetry pipenv hatch pdm uv bandit pyflakes pycodestyle sphinx-build"):
		c.exec(append([]arg{literal(name)}, words...))
	case oneOf(name, "http.server SimpleHTTPServer smtpd pydoc wsgiref.simple_server xmlrpc.server aiosmtpd uvicorn flask gunicorn"):
		c.zone(ZoneMachine, "starts a server on the network")
	case oneOf(name, "timeit code asyncio IPython idlelib pdb trace cProfile profile runpy webbrowser antigravity ensurepip sqlite3 telnetlib ftplib smtplib pty turtledemo ptpython bpython"):
		c.unknown("the module runs code or commands from its arguments")
	case name == "json.tool":
		c.readAll(words[:min(1, len(words))])
		c.writeAll(parseOptions(words, "*").from(1))
	case oneOf(name, "this calendar platform sysconfig site ast tokenize dis tabnanny inspect"):
		for _, a := range words {
			if !strings.HasPrefix(a.text, "-") {
				c.read(a)
			}
		}
	case name == "venv":
		c.zone(ZoneWorkspace, "")
		c.writeAll(parseOptions(words, "* prompt=").rest)
	default:
		c.zone(ZoneBuild, "runs code of the project")
		c.known(words)
		c.touchAll(words)
	}
}

// pipCommand judges pip. It runs code of the packages that it installs.
func pipCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* r=< requirement=< c=< constraint=< e=< editable=< t=> target=> root=> prefix=> src=> i= index-url= extra-index-url= f= find-links= d=> dest=> w=> wheel-dir=> proxy= "+
		"python=! cache-dir=> log=> report=> cert=< client-cert=< trusted-host= user break-system-packages format= timeout= retries= no-binary= only-binary= platform= python-version= "+
		"implementation= abi= global-option= config-settings= C= upgrade-strategy= use-feature= use-deprecated= exists-action= path= exclude= group= config-setting=")
	c.throughAll(o.values("i", "index-url", "extra-index-url", "proxy", "trusted-host"))
	for _, u := range o.values("f", "find-links") {
		c.packages([]arg{u})
	}
	words := o.from(1)
	switch verb := word(o.rest, 0); verb {
	case "list", "show", "freeze", "check", "help", "hash", "inspect", "debug":
		if verb == "list" && o.may("o", "outdated", "u", "uptodate") {
			c.zone(ZoneNetwork, "looks up versions on the network")
		}
	case "config", "cache":
		if !oneOf(word(words, 0), "list get debug dir info") {
			c.zone(ZoneMachine, "changes the user's pip settings or cache")
		}
	case "install", "download", "wheel", "index", "search", "lock":
		c.installs()
		c.packages(words)
		if o.has("user", "break-system-packages") {
			c.zone(ZoneMachine, "installs or removes programs")
		}
	case "uninstall":
		c.zone(ZoneMachine, "installs or removes programs")
	case "":
	default:
		c.unknown("Belay does not know what pip " + shown(verb) + " does")
	}
}

// pythonTool judges programs that check or run the code of the project.
func pythonTool(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* c=< config-file=< rcfile=< rootdir= basetemp=> junitxml=> junit-xml=> k= m= n= p= o= override-ini= html=> cov-report= resultlog=> log-file=> output-file=> "+
		"d=> data-file=> confcutdir= cov=? maxfail= tb= durations= timeout= W= r= dist= tx=! rsyncdir=")
	c.zone(ZoneBuild, "runs code of the project")
	if c.name == "coverage" && word(o.rest, 0) == "run" {
		return
	}
	c.worksOn(o.rest)
}

// pythonFormatter judges programs that rewrite files, or only check them.
func pythonFormatter(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* l= line-length= t= target-version= config=< settings-path=< sp=< c= code= check diff select= ignore= extend-select= exclude= include= output-format= output-file=> o=> i in-place fix fix-only "+
		"add-fixes unsafe-fixes profile= src= stdin-filename= style= q quiet")
	files := o.rest
	writes := c.name == "black" || c.name == "isort" || c.name == "pyupgrade" || o.has("i", "in-place")
	if c.name == "ruff" {
		writes = word(files, 0) == "format" || o.may("fix", "fix-only", "add-noqa")
		files = files[min(1, len(files)):]
	}
	if writes && !o.has("check", "diff", "check-only") {
		c.zone(ZoneWorkspace, "")
		c.writeAll(files)
		return
	}
	c.readAll(files)
}

func projectCommand(c *invoked) {
	c.zone(ZoneBuild, "loads plugins of the project")
	o := c.options(c.args, "+*C= directory= P= project= p=")
	for _, dir := range o.values("C", "directory", "P", "project", "p") {
		c.code(dir)
	}
	words := o.from(1)
	switch verb := word(o.rest, 0); verb {
	case "", "show", "check", "list", "info", "graph", "env", "about", "version", "dep", "status":
		if verb == "env" && oneOf(word(words, 0), "remove prune run") {
			c.zone(ZoneBuild, "runs code of the project")
		}
	case "run", "exec":
		c.zone(ZoneBuild, "runs a program of the project's packages")
		c.exec(parseOptions(words, "+*").rest)
	case "install", "add", "update", "lock", "sync", "search", "upgrade", "outdated", "fetch", "self":
		c.installs()
		c.packages(words)
		if verb == "self" {
			c.zone(ZoneMachine, "installs or removes programs")
		}
	case "build", "test", "fmt", "format", "lint", "remove", "uninstall", "clean":
		c.zone(ZoneBuild, "builds or runs the project")
	case "new", "init", "export", "requirements", "use":
		c.zone(ZoneWorkspace, "")
		c.touchAll(words)
	case "publish":
		c.publishes("publishes")
	case "shell":
		c.unknown("starts a shell that runs its input")
	default:
		c.zone(ZoneMachine, "Belay does not know what it does; it may change files outside the project")
	}
}

func uvCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+*directory= project= config-file=! cache-dir=> index= default-index= i= index-url= extra-index-url= f= find-links=")
	for _, dir := range o.values("directory", "project") {
		c.code(dir)
	}
	words := o.from(1)
	const indexes = "* index= default-index= i= index-url= extra-index-url= allow-insecure-host="
	c.throughAll(append(o.values("index", "default-index", "i", "index-url", "extra-index-url"), parseOptions(words, indexes).values("index", "default-index", "i", "index-url", "extra-index-url", "allow-insecure-host")...))
	switch verb := word(o.rest, 0); verb {
	case "", "version", "help":
	case "tree":
		c.zone(ZoneBuild, "builds packages to find their dependencies")
	case "run":
		r := c.options(words, "+*with= with-editable= with-requirements= p= python= env-file=< extra= group= package= directory= project= m module s script")
		if r.has("with", "with-editable", "with-requirements") {
			c.unknown("fetches a program and runs it")
		}
		c.zone(ZoneBuild, "runs a program of the project's packages")
		switch first := word(r.rest, 0); {
		case r.has("m", "module"):
		case strings.HasSuffix(first, ".py") || r.has("s", "script"):
			c.runScript(r.rest)
		default:
			c.exec(r.rest)
		}
	case "pip":
		if oneOf(word(words, 0), "list show freeze check tree") {
			return
		}
		c.installs()
		p := c.options(words, "* r=< requirement=< c=< constraint=< e=< editable=< target=> prefix=> p= python= index-url= extra-index-url= system break-system-packages")
		if p.has("system", "break-system-packages") {
			c.zone(ZoneMachine, "installs or removes programs")
		}
		c.packages(p.from(1))
	case "add", "sync", "lock", "export", "audit":
		c.installs()
		c.packages(words)
	case "build", "remove", "format":
		c.zone(ZoneBuild, "builds the project")
	case "venv", "init":
		c.zone(ZoneWorkspace, "")
		c.writeAll(parseOptions(words, "* p= python= prompt= name=").rest)
	case "publish":
		c.publishes("publishes")
	case "tool", "x":
		if verb == "tool" && oneOf(word(words, 0), "list dir") {
			return
		}
		c.unknown("fetches a program and runs it")
	default: // python, self, cache, generate-shell-completion
		c.zone(ZoneMachine, "installs or removes programs")
	}
}

func condaCommand(c *invoked) {
	o := c.options(c.args, "+*")
	switch verb := word(o.rest, 0); verb {
	case "", "list", "info":
	case "search":
		c.installs()
	case "run":
		c.zone(ZoneBuild, "runs code of the project")
		c.exec(c.options(o.from(1), "+*n= name= p= prefix= cwd=<").rest)
	case "install", "create", "update", "upgrade":
		c.installs()
		for _, channel := range c.options(o.from(1), "* n= name= p=> prefix=> f=< file=< c= channel=").values("c", "channel") {
			if !channel.known || !oneOf(channel.text, "defaults conda-forge bioconda") {
				c.through(channel)
			}
		}
	default:
		c.zone(ZoneMachine, "installs or removes programs")
	}
}
