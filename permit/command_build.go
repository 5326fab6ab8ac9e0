package permit

import (
	"slices"
	"strings"
)

func compileCommands(t table) {
	compile := builder("compiles the project", "*- o=> wrapper=$ B=! I= L= l= D= U= include=< isystem= iquote= idirafter= x= MF=> MT= MQ= Xlinker= Xpreprocessor= Xassembler= Xclang= T=< target= arch= "+
		"framework= isysroot= sysroot= soname= h= u= z= m= e= R= rpath= Map=> dumpbase= dumpdir=> aux-info=>")
	t.add("gcc cc g++ c++ clang clang++ tcc icc gfortran ld ld.lld ld.gold lld mold as gas nasm yasm objcopy strip", func(c *invoked) {
		for _, a := range c.args {
			if runsFromFlags(a.text) {
				c.unknown("the compiler may run another program or read more options because of " + shown(a.text))
			}
			if file, ok := strings.CutPrefix(a.text, "-o"); ok && file != "" && a.known {
				c.write(literal(file))
			}
		}
		compile(c)
	})
	t.add("ldd", func(c *invoked) {
		c.zone(ZoneBuild, "may run the program that it inspects")
		for _, a := range c.options(c.args, "*").rest {
			if c.isSystemFile(a) {
				c.read(a)
			} else {
				c.worksOn([]arg{a})
			}
		}
	})
	t.add("pkg-config pkgconf", func(c *invoked) {
		c.options(c.args, "* log-file=>")
		c.usesAll()
	})
	t.add("clang-format", func(c *invoked) {
		if o := c.options(c.args, "* i style= assume-filename= files=!"); o.has("i") {
			c.zone(ZoneWorkspace, "")
			c.writeAll(o.rest)
		} else {
			c.readAll(o.rest)
		}
	})
	t.add("zig swift swiftc ghc ocamlc ocamlopt dune dmd nim crystal v fpc elm purs", byVerb("", builder("builds or runs the project", "* e=! eval=! o=>"), map[string]judge{
		"publish upload": at(ZoneExternal, "publishes"),
		"fetch package":  at(ZoneNetwork, "fetches from the network"),
		"version help":   harmless,
		"repl":           opaque("runs its input as code"),
	}))
	t.add("protoc buf flatc thrift capnp", func(c *invoked) {
		builder("generates code", "* plugin=! o=> out=>")(c)
		c.touchAll(c.args) // for --x_out=DIR
	})
	t.add("hugo", func(c *invoked) {
		c.known(c.args)
		switch verb := word(c.args, 0); verb {
		case "version", "help", "env":
		case "deploy":
			c.zone(ZoneExternal, "publishes")
		case "mod":
			c.zone(ZoneNetwork, "fetches from the network")
		default:
			builder("builds the project", "* d=> destination=> s=< source=< c=< contentDir=< config=< b= baseURL= e= environment= t= theme= themesDir=< cacheDir=>")(c)
		}
	})
	t.add("rails", railsCommand)
	t.add("shellcheck shfmt yamllint hadolint codespell typos vale jsonlint taplo", lintCommand)
}

// builder judges commands that build or run the project and use the files in their
// arguments.
func builder(why, list string) judge {
	return func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, list)
		c.zone(ZoneBuild, why)
		c.worksOn(o.rest)
	}
}

// worksOn records the files in the arguments of a build or a check. The command may change
// them. A path that may lead out of the project counts as code that the command runs.
func (c *invoked) worksOn(files []arg) {
	for _, a := range files {
		if isOutward(a) {
			c.code(a)
		} else {
			c.touchAll([]arg{a})
		}
	}
}

// isSystemFile reports whether a path certainly leads to a file of the operating system.
func (c *invoked) isSystemFile(a arg) bool {
	if !a.isText() {
		return false
	}
	spots := c.spots(a, reads)
	return len(spots) > 0 && !slices.ContainsFunc(spots, func(s spot) bool { return s.err != nil || !isHarmlessSystem(s.path) })
}

// byVerb judges commands whose first word is a verb. list has the options that may come
// before the verb. A key of known has one or more verbs, separated by blanks. other
// judges all other verbs, and gets all arguments.
func byVerb(list string, other judge, known map[string]judge) judge {
	all := map[string]judge{}
	for names, j := range known {
		for name := range strings.FieldsSeq(names) {
			all[name] = j
		}
	}
	return func(c *invoked) {
		o := c.options(c.args, "+*"+list)
		if len(o.rest) == 0 && !c.hasWords() {
			return
		}
		judge, ok := all[word(o.rest, 0)]
		if !ok {
			other(c)
			return
		}
		sub := *c
		sub.args = o.rest[1:]
		judge(&sub)
	}
}

// hasWords reports whether the command does more than print its version or its help.
func (c *invoked) hasWords() bool { return len(c.args) > 0 && !asksOnly(c) }

func lintCommand(c *invoked) {
	o := c.options(c.args, "* w write fix write-changes c=< config=< f= format= s= shell= i=? e= x rcfile=< d= in-place dump-config=>")
	if c.name == "shellcheck" && o.may("x", "external-sources") && o.may("a", "check-sourced") {
		c.unknown("it shows lines of any file that a script includes: remove -a")
	}
	formats := c.name == "taplo" && oneOf(word(o.rest, 0), "fmt format") && !o.has("check") || c.name == "jsonlint" && o.may("i", "in-place")
	if formats || o.has("w", "write", "fix", "write-changes") {
		c.zone(ZoneWorkspace, "")
		c.writeAll(o.rest)
	} else {
		c.readAll(o.rest)
	}
}

// makeCommands are programs that run recipes of the project.
func makeCommands(t table) {
	t.add("make gmake bmake remake", makeCommand)
	t.add("cmake", cmakeCommand)
	t.add("bazel bazelisk", byVerb("", recipes("* run_under=$"), map[string]judge{
		"fetch sync": at(ZoneNetwork, "fetches from the network"),
	}))
	t.add("pre-commit", hookCommand)
	t.add("husky lefthook overcommit", hookCommand)
}

// recipes judges commands that run recipes of the project. list has their options.
func recipes(list string) judge {
	return func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, list)
		c.zone(ZoneBuild, "runs the recipes of the project")
		for _, dir := range o.values("C", "d", "dir", "directory", "working-directory") {
			c.code(dir)
		}
	}
}

// makeCommand judges make. Recipes can use the variables on its command line.
func makeCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* f= file= makefile= C= directory= I=< include-dir=< eval=! E=! j=? jobs=? l=? load-average=? max-load=? o= old-file= assume-old= W= what-if= new-file= "+
		"assume-new= O=? output-sync=? debug=? no-builtin-rules q question n just-print dry-run recon")
	c.zone(ZoneBuild, "runs the recipes of the project")
	judge := func() {
		for _, f := range o.values("f", "file", "makefile") {
			if f.known && f.text == "-" || isStdin(f) {
				c.unknown("cannot determine which recipes it runs")
				continue
			}
			c.code(f)
		}
	}
	dir, moved := literal("."), false
	for _, d := range o.values("C", "directory") {
		dir, moved = d, true
	}
	if moved {
		c.in(dir, judge)
		c.code(dir)
	} else {
		judge()
	}
	installs, elsewhere := false, false
	for _, a := range o.rest {
		name, value, ok := strings.Cut(a.text, "=")
		if ok && a.known {
			c.makeVariable(strings.TrimRight(name, ":?+!"), value)
			elsewhere = elsewhere || oneOf(name, "DESTDIR prefix PREFIX")
		}
		installs = installs || name == "install" || name == "uninstall"
	}
	if installs && !elsewhere && !o.has("n", "just-print", "dry-run", "recon") {
		c.zone(ZoneMachine, "installs the project")
	}
}

// makeVariable judges a variable on the command line of make.
func (c *invoked) makeVariable(name, value string) {
	switch {
	case oneOf(name, "SHELL .SHELLFLAGS MAKEFLAGS MAKE MAKEFILES MFLAGS"):
		c.unknown(name + " changes how recipes run")
		c.child(literal(value))
		return
	case strings.ContainsAny(value, "`$;|&<>()"):
		c.unknown("recipes run the value of " + shown(name))
		c.child(literal(value))
		return
	}
	if first, _, _ := strings.Cut(strings.TrimSpace(value), " "); strings.Contains(value, " ") && c.floor.commands.judges[first] != nil {
		c.child(literal(value))
	}
	c.setting(name, literal(value))
}

func cmakeCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	if word(c.args, 0) == "-E" { // -E runs small file tools
		switch words := c.args[min(2, len(c.args)):]; word(c.args, 1) {
		case "echo", "echo_append", "environment", "capabilities", "true", "false", "sleep", "cat", "md5sum", "sha256sum":
			c.readAll(words)
		case "time", "env", "chdir":
			c.unknown("it runs another program")
			c.exec(words)
		case "rm", "remove", "remove_directory":
			c.zone(ZoneWorkspace, "")
			c.protect(destroyFiles, "removes files")
			for _, a := range words {
				if !strings.HasPrefix(a.text, "-") {
					c.remove(a)
				}
			}
		default:
			c.zone(ZoneWorkspace, "")
			c.writeAll(words)
		}
		return
	}
	o := c.options(c.args, "* S=< B=> P=< C=< G= T= A= D= U= build=> install=> prefix=> target= t= j=? parallel=? config= toolchain=< preset= graphviz=> open=> trace-redirect=>")
	c.zone(ZoneBuild, "runs the recipes of the project")
	if o.has("install") {
		c.zone(ZoneMachine, "installs the project")
	}
	c.readAll(o.rest)
}

// hookCommand judges programs that run checks and can install themselves as git hooks.
func hookCommand(c *invoked) {
	c.options(c.args, "* c=< config=<")
	c.zone(ZoneBuild, "runs the checks of the project")
	switch word(parseOptions(c.args, "*").rest, 0) {
	case "install", "uninstall", "init-templatedir", "add", "set", "init", "migrate-config", "self-update", "autoupdate", "update":
		c.protect(selfGit, "changes the hooks of git")
	case "":
		if c.name == "husky" {
			c.protect(selfGit, "changes the hooks of git")
		}
	}
}

// railsCommand judges rails. Every rails command runs code of the project.
func railsCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "* e= environment= p= port= b= binding= n= name=")
	c.zone(ZoneBuild, "runs code of the project")
	switch verb := word(o.rest, 0); {
	case oneOf(verb, "runner r console c dbconsole db credentials:edit encrypted:edit"):
		c.unknown("runs its arguments or its input as code")
	case verb == "new" || verb == "plugin":
		c.installs()
	case strings.HasPrefix(verb, "db:") && oneOf(verb, "db:drop db:drop:all db:reset db:purge db:purge:all db:schema:load db:setup db:migrate:reset db:truncate_all db:seed:replant"):
		c.protect(destroyData, "empties or replaces a database")
	}
	for _, e := range o.values("e", "environment") {
		if !e.known || e.text == "production" {
			c.unknown("may use the production database")
		}
	}
}
