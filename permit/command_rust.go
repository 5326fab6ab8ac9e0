package permit

import "strings"

func rustCommands(t table) {
	t.add("cargo", cargoCommand)
	t.add("rustc rustdoc", func(c *invoked) {
		for _, a := range c.args {
			if runsFromFlags(a.text) {
				c.unknown("the compiler may run another program because of " + shown(a.text))
			}
		}
		builder("compiles the project", "* o=> out-dir=> C= L= l= crate-name= crate-type= edition= cfg= emit= extern= test-args= persist-doctests=> runtool=$ test-runtool=$")(c)
	})
	t.add("rustfmt", func(c *invoked) {
		c.zone(ZoneBuild, loadsToolchain)
		if o := c.options(c.args, "* config-path=< config= edition= emit= check"); o.has("check") {
			c.readAll(o.rest)
		} else {
			c.zone(ZoneWorkspace, "")
			c.writeAll(o.rest)
		}
	})
	t.add("rustup", byVerb("", at(ZoneMachine, "changes the machine's compilers"), map[string]judge{
		"which doc help": harmless,
		"show":           at(ZoneBuild, loadsToolchain),
		"check":          at(ZoneNetwork, "fetches from the network"),
		"run":            wrapper("+* install", 1),
	}))
}

// loadsToolchain is why every Rust command counts as a build: rust-toolchain.toml can
// make rustup run programs from a directory of the project.
const loadsToolchain = "the project chooses which compiler runs"

// cargoCommand judges cargo. Its words are a verb and arguments.
func cargoCommand(c *invoked) {
	c.zone(ZoneBuild, loadsToolchain)
	args := c.args
	if strings.HasPrefix(word(args, 0), "+") { // a toolchain, such as +nightly
		args = args[1:]
	}
	o := c.options(args, "* config=! Z= C= manifest-path=< target-dir=> artifact-dir=> out-dir=> root=> path=< p= package= F= features= j= jobs= target= profile= bin= example= test= bench= "+
		"message-format= color= lockfile-path=> index= registry= token= vers= git= branch= tag= rev=")
	c.touchAll(o.from(1)) // words after -- belong to the program
	for _, dir := range o.values("C") {
		c.code(dir)
	}
	switch verb := word(o.rest, 0); verb {
	case "":
		if len(o.rest) > 0 {
			c.unknown("cannot determine what it does")
		}
	case "build", "b", "check", "c", "test", "t", "run", "r", "bench", "clippy", "doc", "d", "fix", "rustc", "rustdoc", "nextest", "expand", "miri", "package", "llvm-cov", "tarpaulin",
		"hack", "make", "insta", "criterion", "flamegraph", "asm", "bloat", "watch", "component", "wasi", "udeps", "machete", "semver-checks":
		c.zone(ZoneBuild, "builds or runs the project")
		if verb == "watch" || verb == "make" || verb == "flamegraph" {
			if w := parseOptions(args, "* s= shell="); w.has("s", "shell") {
				c.unknown("it runs another program")
			}
		}
	case "metadata", "tree", "read-manifest", "locate-project", "pkgid", "verify-project", "version", "help":
		c.zone(ZoneBuild, "reads the packages of the project")
	case "fmt", "new", "init", "remove", "rm", "generate-lockfile", "sort":
		c.zone(ZoneWorkspace, "")
		if verb == "new" || verb == "init" {
			c.writeAll(o.from(1))
		}
	case "clean":
		c.zone(ZoneWorkspace, "")
	case "add", "update", "fetch", "install", "search", "vendor", "info", "outdated", "audit", "deny", "generate", "binstall", "upgrade":
		c.installs()
		c.throughAll(o.values("git", "index", "registry"))
	case "publish", "yank", "owner", "release":
		c.publishes("publishes")
	case "login", "logout", "uninstall":
		c.zone(ZoneMachine, "changes the user's cargo settings")
	default:
		c.unknown("Belay does not know what cargo " + shown(verb) + " does")
	}
}
