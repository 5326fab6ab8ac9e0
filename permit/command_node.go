package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func nodeCommands(t table) {
	t.add("node nodejs", nodeCommand)
	t.add("npm", npmCommand)
	t.add("pnpm", pnpmCommand)
	t.add("yarn yarnpkg", yarnCommand)
	t.add("npx bunx pnpx", npxCommand)
	t.add("bun", bunCommand)
	t.add("deno", denoCommand)
	t.add("nodemon", func(c *invoked) {
		o := c.options(c.args, "+*x= exec= w= watch= e= ext= i= ignore= config=< d= delay= C")
		c.zone(ZoneBuild, "runs code of the project")
		for _, text := range o.values("x", "exec") {
			c.child(text)
		}
		if len(o.rest) > 0 && !o.has("x", "exec") {
			c.code(o.rest[0])
		}
	})
	t.add("tsc eslint prettier jest vitest mocha ava tap karma cypress playwright webpack vite rollup esbuild parcel next nuxt astro svelte-kit ng vue-cli-service react-scripts "+
		"biome standard xo stylelint c8 nyc rimraf babel swc tsup ncc remix gatsby storybook lint-staged markdownlint knip depcheck oxlint turbo concurrently", func(c *invoked) {
		o := c.options(c.args, "* c=< config=< o=> outfile=> outFile=> declarationDir=> tsBuildInfoFile=> outDir=> outdir=> output-file=> p=< project=<")
		if asksOnly(c) {
			return
		}
		c.zone(ZoneBuild, "processes the code of the project")
		c.touchAll(o.rest)
		switch c.name {
		case "rimraf":
			c.protect(destroyFiles, "removes whole directories")
			for _, a := range o.rest {
				c.remove(a)
			}
		case "concurrently":
			for _, text := range o.rest {
				c.child(text)
			}
		}
	})
	t.add("nvm fnm volta n asdf mise rtx corepack pyenv rbenv nodenv goenv jenv", func(c *invoked) {
		o := c.options(c.args, "+*")
		c.zone(ZoneMachine, "changes which versions of programs are installed or used")
		if oneOf(word(o.rest, 0), "exec x run") {
			c.exec(parseOptions(o.rest[1:], "+*").rest)
		}
	})
}

// scriptRunner judges interpreters. In the list, % marks options whose value is code.
func scriptRunner(list string) judge {
	return func(c *invoked) {
		if asksOnly(c) {
			return
		}
		o := c.options(c.args, list)
		inline := slices.ContainsFunc(o.given, func(g option) bool { return strings.HasSuffix(g.kind, "!") || strings.HasSuffix(g.kind, "%") })
		switch {
		case inline && o.has("i"): // -i edits files in place
			c.writeAll(o.rest)
		case inline:
			c.readAll(o.rest)
		case o.has("v", "version") && len(o.rest) == 0:
		default:
			c.runScript(o.rest)
		}
	}
}

// runScript records that an interpreter runs the file in its first argument. Without
// arguments, the interpreter runs its standard input.
func (c *invoked) runScript(words []arg) {
	if len(words) == 0 || isStdin(words[0]) || words[0].known && words[0].text == "-" {
		c.snippet()
		return
	}
	c.code(words[0])
	c.touchAll(words[1:])
}

func nodeCommand(c *invoked) {
	o := c.options(c.args, "+*e= eval= p= print= r=< require=< import=< loader=< experimental-loader=< C= conditions= env-file=< env-file-if-exists=< inspect=? inspect-brk=? inspect-port= "+
		"title= icu-data-dir= openssl-config=! diagnostic-dir=> cpu-prof-dir=> heap-prof-dir=> redirect-warnings=> report-directory=> trace-event-file-pattern=> test-reporter=< "+
		"test-reporter-destination=> build-snapshot-config=! experimental-sea-config=! run= test watch v version h help i interactive c check watch-path= input-type= test-name-pattern= "+
		"max-old-space-size= stack-size= unhandled-rejections= snapshot-blob= disable-warning=")
	for _, module := range o.values("import", "loader", "experimental-loader") {
		if strings.Contains(module.text, ":") { // a data: URL contains code
			c.unknown("runs code that is not in a file of the project")
		}
	}
	switch {
	case o.has("e", "eval", "p", "print"):
		c.snippet()
	case o.has("v", "version", "h", "help") && len(o.rest) == 0:
	case o.has("c", "check"):
		c.readAll(o.rest)
	case o.has("test", "run"):
		c.zone(ZoneBuild, "runs code of the project")
		for _, a := range o.rest {
			c.code(a)
		}
	default:
		c.runScript(o.rest)
	}
}

// packageOptions are the options of npm, pnpm and yarn that affect more than the project.
const packageOptions = "+*g global location= prefix= C= cwd= dir= script-shell=! shell=! node-options=! userconfig=! globalconfig=! git=! registry= proxy= https-proxy= w= workspace= F= filter= tag= loglevel= " +
	"ignore-workspace-root-check reporter= modules-folder=> cache-folder=> cache=> editor=! viewer=! init-module=!"

// packager parses the arguments of a package manager. It returns the verb, the words
// after the verb, and all options.
func (c *invoked) packager() (verb string, words []arg, o *options) {
	o = c.options(c.args, packageOptions)
	if len(o.rest) > 0 {
		c.known(o.rest)
		verb, words = word(o.rest, 0), o.rest[1:]
		list := strings.TrimPrefix(packageOptions, "+")
		switch {
		case oneOf(verb, "exec x dlx create"):
			list = packageOptions // the words after the options are another command
		case oneOf(verb, "run run-script test start") && c.name != "npm":
			list = "" // all arguments belong to the script
		}
		if list != "" {
			more := c.options(words, list)
			o.given = append(o.given, more.given...)
			words = more.rest
		}
	}
	if o.has("g", "global") || word(o.values("location"), 0) == "global" {
		c.zone(ZoneMachine, "installs or removes programs")
	}
	for _, dir := range o.values("prefix", "C", "cwd", "dir") {
		c.code(dir)
	}
	c.throughAll(o.values("registry", "proxy", "https-proxy"))
	for _, a := range c.args { // --@scope:registry=…
		if name, value, ok := strings.Cut(a.text, "="); ok && strings.HasPrefix(name, "--@") {
			c.through(arg{text: value, known: a.known})
		}
	}
	return verb, words, o
}

func npmCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	verb, words, o := c.packager()
	switch verb {
	case "":
	case "test", "t", "tst", "run", "run-script", "rum", "urn", "start", "stop", "restart", "rebuild", "rb", "uninstall", "un", "unlink", "remove", "rm", "r", "prune", "dedupe", "ddp",
		"shrinkwrap":
		c.zone(ZoneBuild, "runs scripts of the project")
	case "pack":
		c.zone(ZoneBuild, "runs scripts of the project")
		c.writeAll(o.values("pack-destination"))
		if len(words) > 0 {
			c.installs()
			c.packages(words)
		}
	case "version":
		if len(words) > 0 {
			c.zone(ZoneBuild, "runs scripts of the project")
		}
	case "install", "i", "in", "ins", "inst", "insta", "instal", "isnt", "isnta", "isntal", "add", "ci", "clean-install", "ic", "install-clean", "isntall-clean", "update", "up", "upgrade", "udpate",
		"install-test", "it", "install-ci-test", "cit", "outdated", "view", "info", "show", "v", "search", "find", "s", "se", "audit", "ping", "doctor", "fund", "whoami", "diff":
		c.installs()
		c.packages(words)
	case "ls", "list", "la", "ll", "root", "bin", "explain", "why", "query", "completion", "sbom":
	case "help", "help-search":
		c.zone(ZoneBuild, "the project chooses the program that shows the help")
	case "config", "c", "get", "set":
		if verb == "set" || verb != "get" && !oneOf(word(words, 0), "get list ls") {
			c.zone(ZoneMachine, "changes the user's npm settings")
		}
	case "pkg", "init", "create", "innit", "cache":
		c.zone(ZoneWorkspace, "")
		if len(words) > 0 && (verb == "init" || verb == "create" || verb == "innit") {
			c.unknown("fetches a program and runs it")
		}
	case "exec", "x":
		c.runPackage(o, words, o.has("no", "no-install", "offline"))
	case "publish", "unpublish", "deprecate", "undeprecate", "owner", "author", "team", "access", "dist-tag", "dist-tags", "star", "unstar", "hook", "org", "profile":
		c.publishes("changes published packages")
		if verb == "unpublish" {
			c.protect(destroyData, "removes a published package")
		}
	default: // link, login, token, edit, explore, docs, repo, …
		c.zone(ZoneMachine, "npm "+shown(verb)+" may change files outside the project")
	}
}

// packages records the packages that are given as a URL or a path.
func (c *invoked) packages(words []arg) {
	for _, a := range words {
		switch {
		case strings.Contains(a.text, "://"):
			c.through(a)
		case isOutward(a) || strings.HasPrefix(a.text, "file:"):
			c.read(arg{text: strings.TrimPrefix(a.text, "file:"), known: a.known})
		}
	}
}

// installed reports whether a program is among the project's installed packages. Then
// nothing is downloaded.
func (c *invoked) installed(name arg) bool {
	if !name.isText() || strings.ContainsAny(name.text, "/@\\") || len(c.dirs) != 1 {
		return false
	}
	spots := c.spots(literal("node_modules/.bin/"+name.text), reads)
	return len(spots) == 1 && spots[0].inside && c.exists(literal("node_modules/.bin/"+name.text))
}

// runPackage records that the command runs a program of a package. The program is
// downloaded if it is not installed.
func (c *invoked) runPackage(o *options, words []arg, local bool) {
	for _, text := range o.values("c", "call") {
		c.child(text)
	}
	if local || len(words) > 0 && !o.has("p", "package", "c", "call") && c.installed(words[0]) {
		c.zone(ZoneBuild, "runs a program of the project's packages")
	} else {
		c.unknown("fetches a program and runs it")
	}
	if len(words) > 0 && c.floor.commands.judges[word(words, 0)] != nil {
		c.exec(words)
	}
}

func npxCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+p= package= c= call= no-install no n node-arg=! shell=! script-shell=! userconfig=! cache=> prefix= q quiet y yes ignore-existing w= workspace= ws workspaces offline prefer-offline "+
		"always-spawn bun verbose silent")
	c.fromOutside(o.rest)
	c.runPackage(o, o.rest, o.has("no-install", "no", "offline") || !o.has("p", "package", "ignore-existing", "prefix") && c.isInstalled(o.rest))
}

// fromOutside records that the program is outside the project: it is given as a path, or
// it is a link that leads out of the project.
func (c *invoked) fromOutside(words []arg) {
	name := word(words, 0)
	if name == "" {
		return
	}
	if strings.Contains(name, "..") || strings.HasPrefix(name, "/") {
		c.unknown("runs a program from outside the project")
		return
	}
	for _, s := range c.spots(literal("node_modules/.bin/"+name), reads) {
		if !s.inside && !s.extra || s.err != nil {
			c.unknown("runs a program from outside the project")
		}
	}
}

// isInstalled reports whether the project's packages include the program. Then nothing is
// downloaded.
func (c *invoked) isInstalled(words []arg) bool {
	name := word(words, 0)
	if name == "" || strings.ContainsAny(name, "/@:\\") || len(c.dirs) == 0 {
		return false
	}
	for _, s := range c.spots(literal("node_modules/.bin/"+name), reads) {
		info, err := os.Stat(filepath.FromSlash(s.path))
		if !s.inside || err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

func pnpmCommand(c *invoked) {
	c.zone(ZoneBuild, "runs .pnpmfile.cjs of the project, or the version of pnpm that the project selects")
	if isQuestion(c) {
		return
	}
	verb, words, o := c.packager()
	switch verb {
	case "":
	case "exec":
		c.zone(ZoneBuild, "runs a program of the project's packages")
		c.fromOutside(words)
		c.exec(words)
	case "dlx", "create":
		c.runPackage(o, words, false)
	case "install", "i", "add", "update", "up", "upgrade", "fetch", "outdated", "audit", "import", "dedupe", "patch", "view", "info", "search", "ci":
		c.installs()
		c.packages(words)
	case "publish", "owner", "deprecate", "dist-tag":
		c.publishes("changes published packages")
	case "list", "ls", "la", "ll", "why", "root", "bin", "licenses":
	case "config", "c", "set", "setup", "env", "link", "ln", "store", "login", "logout", "server", "self-update", "token":
		c.zone(ZoneMachine, "changes the machine or the user's settings")
	default: // a script
		c.zone(ZoneBuild, "runs scripts of the project")
	}
}

func yarnCommand(c *invoked) {
	c.zone(ZoneBuild, "runs the yarn program that .yarnrc.yml of the project selects")
	if isQuestion(c) {
		return
	}
	verb, words, o := c.packager()
	switch verb {
	case "", "install", "add", "upgrade", "up", "upgrade-interactive", "import", "outdated", "audit", "info", "dedupe", "fetch":
		c.installs()
		c.packages(words)
	case "exec":
		c.zone(ZoneBuild, "runs a program of the project's packages")
		c.exec(words)
	case "dlx", "create":
		c.runPackage(o, words, false)
	case "publish", "owner", "tag", "team":
		c.publishes("changes published packages")
	case "npm":
		c.publishes("changes published packages")
	case "list", "why", "bin", "licenses", "versions", "workspaces", "help":
		if verb == "workspaces" {
			c.zone(ZoneBuild, "runs scripts of the project")
		}
	case "config", "global", "link", "unlink", "login", "logout", "set", "self-update", "policies", "plugin", "cache":
		c.zone(ZoneMachine, "changes the machine or the user's settings")
	default: // a script
		c.zone(ZoneBuild, "runs scripts of the project")
	}
}

func bunCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "+*e=! eval=! p=! print=! r=< preload=< config=< cwd= env-file=<")
	words := o.from(1)
	switch verb := word(o.rest, 0); verb {
	case "":
		if !o.has("e", "eval", "p", "print") {
			c.unknown("runs code that is not in a file of the project")
		}
	case "install", "i", "add", "a", "update", "outdated", "audit", "info", "ci":
		c.installs()
		c.throughAll(parseOptions(words, "* registry=").values("registry"))
		c.packages(words)
		if parseOptions(words, "*").has("g", "global") {
			c.zone(ZoneMachine, "installs or removes programs")
		}
	case "x", "create", "c":
		c.runPackage(o, words, false)
	case "exec":
		c.zone(ZoneBuild, "runs a script")
		c.child(spaced(words))
	case "publish":
		c.publishes("changes published packages")
	case "upgrade", "link", "unlink":
		c.zone(ZoneMachine, "changes the machine")
	case "repl":
		c.unknown("runs its input as code")
	case "pm", "remove", "rm", "init", "test", "run", "build", "patch":
		c.zone(ZoneBuild, "builds or runs the project")
	default: // a file or a script
		c.zone(ZoneBuild, "runs code of the project")
		if isOutward(o.rest[0]) {
			c.code(o.rest[0])
		}
	}
}

func denoCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "*c=< config=< import-map=< o=> output=> cert=< env-file=?<")
	words := o.from(1)
	switch verb := word(o.rest, 0); verb {
	case "", "eval", "repl", "jupyter":
		c.unknown("runs code that is not in a file of the project")
	case "test", "bench", "check", "task", "compile", "coverage":
		c.zone(ZoneBuild, "builds or runs the project")
		c.remoteCode(words)
	case "fmt":
		c.zone(ZoneWorkspace, "")
		c.writeAll(words)
	case "lint", "doc", "info", "types", "completions":
		if verb == "lint" {
			c.zone(ZoneBuild, "runs plugins of the project")
		}
		c.packages(words)
		c.readAll(words)
	case "cache", "add", "install", "i", "outdated", "update", "vendor":
		c.installs()
		c.packages(words)
		if o.has("g", "global") {
			c.zone(ZoneMachine, "installs or removes programs")
		}
	case "publish", "deploy":
		c.publishes("publishes")
	case "run", "serve":
		c.remoteCode(words[:min(1, len(words))])
	default:
		c.remoteCode(o.rest[:1])
	}
}

// remoteCode records that the command runs files, or code from URLs.
func (c *invoked) remoteCode(words []arg) {
	for _, a := range words {
		if strings.Contains(a.text, ":") {
			c.unknown("fetches a program and runs it")
			continue
		}
		c.code(a)
	}
}
