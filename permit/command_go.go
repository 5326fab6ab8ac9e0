package permit

import (
	"path"
	"strings"
)

func goCommands(t table) {
	verbs := goVerbs()
	t.add("go", func(c *invoked) { goCommand(c, verbs) })
	t.add("gofmt gofumpt goimports golines gci", formatGoCommand)
	t.add("golangci-lint staticcheck gopls revive errcheck gosec ginkgo stringer mockgen wire sqlc ent protoc-gen-go godoc benchstat gocov", func(c *invoked) {
		if !asksOnly(c) {
			o := c.options(c.args, "* c=< config=< o=> out=> destination=>")
			c.zone(ZoneBuild, "processes the code of the project")
			c.touchAll(o.rest)
		}
	})
	t.add("gotestsum", gotestsumCommand)
	t.add("dlv", debugGoCommand)
}

// buildFlags are the flags of go build and of similar commands.
const buildFlags = "*- C= o=> exec= toolexec= overlay=< modfile=< pkgdir=> vettool= ldflags= gcflags= asmflags= gccgoflags= compiler= mod= tags= p= buildmode= installsuffix= covermode= coverpkg= " +
	"pgo= coverprofile=> cpuprofile=> memprofile=> blockprofile=> mutexprofile=> trace=> outputdir=> test.coverprofile=> test.cpuprofile=> test.memprofile=> test.trace=> run= bench= " +
	"count= timeout= parallel= cpu= list= skip= fuzz= fuzztime= fuzzminimizetime= benchtime= shuffle= vet= args=?. f= reuse=<"

// goVerbs returns the judges of the go commands. A key is the name of a command.
func goVerbs() map[string]judge {
	verbs := map[string]judge{}
	add := func(names string, j judge) {
		for name := range strings.FieldsSeq(names) {
			verbs[name] = j
		}
	}
	add("help version doc", func(c *invoked) {
		o := c.options(c.args, "*- http")
		if o.has("http") {
			c.zone(ZoneBuild, "serves the documentation")
		}
		if c.name == "version" {
			c.readAll(o.rest)
		}
	})
	add("build test vet fix generate tool", goBuild)
	add("run", goRun)
	add("list", goList)
	add("env", func(c *invoked) {
		if o := c.options(c.args, "- json w u changed"); o.has("w", "u") {
			c.zone(ZoneMachine, "changes the user's Go settings")
		}
	})
	add("fmt", func(c *invoked) {
		o := c.options(c.args, "- n x mod=")
		c.zone(ZoneWorkspace, "")
		for _, a := range o.rest {
			if isOutward(a) {
				c.write(a)
			}
		}
	})
	add("clean", goClean)
	add("get", func(c *invoked) {
		o := c.options(c.args, buildFlags)
		c.goFlags(o)
		c.zone(ZoneNetwork, "fetches from the network")
		c.denyMetadataHosts(o.rest)
	})
	add("install", goInstall)
	add("mod", goModule)
	add("work", func(c *invoked) {
		c.options(c.args, buildFlags)
		c.zone(ZoneWorkspace, "")
		if oneOf(word(c.args, 0), "sync vendor") {
			c.zone(ZoneNetwork, "fetches from the network")
		}
	})
	add("telemetry bug", func(c *invoked) {
		if c.name == "bug" || len(c.args) > 0 {
			c.zone(ZoneMachine, "changes the machine")
		}
	})
	return verbs
}

// goCommand judges go. Its words are a verb and arguments.
func goCommand(c *invoked, verbs map[string]judge) {
	args, dir := c.args, arg{}
	switch first := word(args, 0); {
	case first == "-C" || first == "--C":
		dir = literal("(nothing)")
		if len(args) > 1 {
			dir = args[1]
		}
		args = args[min(2, len(args)):]
	case strings.HasPrefix(first, "-C="), strings.HasPrefix(first, "--C="):
		dir = literal(first[strings.Index(first, "=")+1:])
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	judge := verbs[word(args, 0)]
	if judge == nil {
		c.unknown("Belay does not know what go " + shown(args[0].text) + " does")
		return
	}
	sub := *c
	sub.name, sub.args = args[0].text, args[1:]
	if w := word(sub.args, 0); dir == (arg{}) && (w == "-C" || strings.HasPrefix(w, "-C=")) {
		dir = parseOptions(sub.args, "-C=").values("C")[0]
	}
	if dir != (arg{}) {
		c.in(dir, func() { judge(&sub) })
		return
	}
	judge(&sub)
}

// goFlags judges flags that make go run other programs.
func (c *invoked) goFlags(o *options) {
	for _, p := range o.values("exec", "toolexec", "vettool") {
		if p.known && !strings.ContainsAny(p.text, "'\"\\") {
			var words []arg
			for w := range strings.FieldsSeq(p.text) {
				words = append(words, literal(w))
			}
			c.exec(words)
			continue
		}
		c.unknown("cannot determine which program it runs")
	}
	for _, f := range o.values("ldflags", "gcflags", "gccgoflags") {
		if runsFromFlags(f.text) {
			c.unknown("the linker runs another program")
		}
	}
}

func goBuild(c *invoked) {
	c.zone(ZoneBuild, "builds or runs the project")
	o := c.options(c.args, buildFlags)
	c.goFlags(o)
	for _, a := range o.rest {
		if strings.Contains(a.text, "@") && c.name != "tool" && c.name != "generate" {
			c.zone(ZoneNetwork, "fetches from the network")
		}
		if isOutward(a) && c.name != "tool" {
			c.code(a)
		}
	}
	if c.name == "tool" {
		c.goTool(o)
	}
}

// goTool judges go tool NAME. It runs a tool of Go, or a tool that the project depends
// on.
func (c *invoked) goTool(o *options) {
	if name := path.Base(word(o.rest, 0)); name == "belay" {
		c.belay(o.from(1))
	}
	c.touchAll(o.from(1))
}

func goRun(c *invoked) {
	o := c.options(c.args, "+"+buildFlags)
	c.goFlags(o)
	c.zone(ZoneBuild, "builds and runs the project")
	if len(o.rest) == 0 {
		return
	}
	first := o.rest[0]
	switch {
	case !first.known:
		c.unknown("cannot determine what it runs")
	case strings.Contains(first.text, "@"):
		c.unknown("fetches a program and runs it")
		c.denyMetadataHosts(o.rest[:1])
	case isOutward(first):
		c.code(first)
	}
	rest := o.rest
	for len(rest) > 0 && strings.HasSuffix(rest[0].text, ".go") {
		rest = rest[1:]
	}
	if len(rest) == len(o.rest) {
		rest = rest[1:]
	}
	if name, _, _ := strings.Cut(path.Base(first.text), "@"); name == "belay" || c.isBelay(first) {
		c.belay(rest)
	}
	c.touchAll(rest)
}

// denyMetadataHosts calls denyMetadata for the host at the start of each name, as in
// names of modules and images.
func (c *invoked) denyMetadataHosts(words []arg) {
	for _, w := range words {
		w.text, _, _ = strings.Cut(w.text, "/")
		w.text, _, _ = strings.Cut(w.text, "@")
		if strings.ContainsAny(w.text, ".:[") {
			c.denyMetadata([]arg{w})
		}
	}
}

func goList(c *invoked) {
	o := c.options(c.args, buildFlags)
	c.goFlags(o)
	if o.has("export", "compiled", "test", "toolexec", "exec") {
		c.zone(ZoneBuild, "builds the project")
	}
	if mod, ok := o.value("mod"); ok && !oneOf(mod.text, "readonly vendor") {
		c.zone(ZoneWorkspace, "") // this changes go.mod
	}
	fetches := o.has("u", "versions", "retracted")
	for _, a := range o.rest {
		fetches = fetches || strings.Contains(a.text, "@")
	}
	if fetches {
		c.zone(ZoneNetwork, "fetches from the network")
	}
}

func goClean(c *invoked) {
	o := c.options(c.args, buildFlags)
	c.zone(ZoneWorkspace, "")
	if o.has("i") {
		c.zone(ZoneMachine, "removes installed programs")
	}
	if o.has("modcache") {
		c.zone(ZoneMachine, "empties the module cache")
		c.protect(destroyFiles, "removes the module cache")
	}
}

// goInstall judges go install. It puts programs into a directory where the shell finds
// them.
func goInstall(c *invoked) {
	o := c.options(c.args, buildFlags)
	c.goFlags(o)
	c.denyMetadataHosts(o.rest)
	for _, a := range o.rest {
		if strings.Contains(a.text, "@") {
			c.zone(ZoneNetwork, "fetches from the network")
			return
		}
	}
	c.zone(ZoneMachine, "installs a program that other commands can run by name")
}

func goModule(c *invoked) {
	verb := word(c.args, 0)
	o := c.options(c.args[min(1, len(c.args)):], buildFlags)
	switch verb {
	case "download", "tidy", "vendor":
		c.zone(ZoneNetwork, "fetches from the network")
		c.denyMetadataHosts(o.rest)
	case "edit":
		c.zone(ZoneWorkspace, "")
		c.writeAll(o.rest)
	case "init":
		c.zone(ZoneWorkspace, "")
	case "graph", "why", "verify":
		c.zone(ZoneBuild, "reads the modules of the project")
	case "", "help":
	default:
		c.unknown("Belay does not know what this command does")
	}
}

func formatGoCommand(c *invoked) {
	args := c.args
	list, writes := "*- r= cpuprofile=> memprofile=> srcdir= local= lang= modpath=", false
	switch c.name {
	case "gci":
		c.known(args)
		list, writes = "* s= section=", word(args, 0) == "write"
		args = args[min(1, len(args)):]
	case "golines":
		list = "* m= max-len= t= tab-len= base-formatter=$"
	}
	o := c.options(args, list)
	if writes || o.has("w", "write-output") {
		c.zone(ZoneWorkspace, "")
		c.writeAll(o.rest)
		return
	}
	c.readAll(o.rest)
}

func gotestsumCommand(c *invoked) {
	o := c.options(c.args, "+* f= format= junitfile=> jsonfile=> jsonfile-timing-events=> post-run-command=$ rerun-fails=? packages= watch-chdir raw-command")
	c.zone(ZoneBuild, "builds and runs the project")
	if o.has("raw-command") {
		c.exec(o.rest)
		return
	}
	c.goFlags(c.options(o.rest, buildFlags))
}

func debugGoCommand(c *invoked) {
	c.options(c.args, "* init=! listen=! l=! accept-multiclient output=> log-dest=>")
	switch word(c.args, 0) {
	case "version", "help", "":
	case "test", "debug", "exec", "trace", "core":
		c.unknown("a debugger can run any command")
	default:
		c.zone(ZoneMachine, "attaches to other processes")
	}
}
