package permit

// packageCommands are package managers that have no Go file of their own.
func packageCommands(t table) {
	fetches := func(c *invoked) {
		c.known(c.args)
		c.installs()
		c.throughAll(parseOptions(c.args, "* s= source= p= http-proxy= repository= repository-url=").values("s", "source", "http-proxy", "repository", "repository-url"))
	}
	builds := at(ZoneBuild, "builds or runs the project")
	publishes := at(ZoneExternal, "publishes")
	machine := at(ZoneMachine, "installs or removes programs")
	other := func(c *invoked) {
		if c.hasWords() {
			c.unknown("Belay does not know what it does; it may change files outside the project")
		}
	}
	t.add("gem", byVerb("", other, map[string]judge{
		"list env environment contents dependency which specification help": harmless,
		"install update fetch search outdated":                              fetches, "build": builds, "push yank owner": publishes, "uninstall cleanup": machine,
	}))
	t.add("bundle bundler", byVerb("", runsProject(other), map[string]judge{
		"list show info check platform help licenses": builds, // the Gemfile is a program
		"install update add outdated lock":            fetches, "remove clean init": builds, "exec": wrapper("+*", 0), "config": machine,
	}))
	t.add("composer", byVerb("d= working-dir= ", builds, map[string]judge{
		"show info licenses validate depends why help list about":     builds, // runs the plugins of the project
		"install update require create-project outdated search audit": fetches, "global self-update config": machine, "exec": wrapper("+*", 0),
	}))
	t.add("pod", byVerb("", other, map[string]judge{"install update repo outdated search": fetches, "trunk": publishes, "lib spec list env help": builds}))
	t.add("mix", byVerb("", builds, map[string]judge{"deps.get deps.update local.hex archive.install hex.outdated": fetches, "hex.publish": publishes, "help": builds}))
	t.add("rebar3 lein sbt stack cabal opam flutter dart", byVerb("", builds, map[string]judge{
		"deps get upgrade update install pub": fetches, "upload publish deploy": publishes, "repl ghci console": opaque("runs its input as code"), "exec": wrapper("+*", 0),
	}))
	t.add("nuget", byVerb("", other, map[string]judge{"restore install list search": fetches, "push delete": publishes, "help": harmless}))
	t.add("dotnet", byVerb("", builds, map[string]judge{
		"restore add list": fetches, "nuget": publishes, "tool workload": machine, "--info --list-sdks --list-runtimes help": builds, "script fsi": opaque("runs code that is not in a file of the project"),
	}))
	t.add("rspec rubocop standardrb brakeman phpunit phpstan psalm phpcs php-cs-fixer pest busted luacheck luarocks credo ktlint detekt swiftlint swiftformat hlint ormolu", builds)
	t.add("apt apt-get aptitude dnf yum zypper pacman yay apk brew port snap flatpak emerge xbps-install pkg pkgin opkg nix-env nix-channel guix winget choco scoop", systemPackages)
	t.add("dpkg", systemPackages)
	t.add("nix nix-shell nix-build nix-store nixos-rebuild", func(c *invoked) {
		if asksOnly(c) {
			return
		}
		c.unknown("builds or runs code from a Nix expression")
		o := parseOptions(c.args, "* run= command= c= p=")
		for _, text := range o.values("run", "command", "c") {
			c.child(text)
		}
	})
}

// runsProject judges programs that run code of the project with any arguments, even with
// --version. j judges the arguments.
func runsProject(j judge) judge {
	return func(c *invoked) {
		c.zone(ZoneBuild, "runs code of the project")
		j(c)
	}
}

// systemPackages judges package managers of the system. Queries are harmless.
func systemPackages(c *invoked) {
	if asksOnly(c) {
		return
	}
	o := c.options(c.args, "*")
	switch word(o.rest, 0) {
	case "list", "show", "policy", "depends", "rdepends", "madison", "leaves", "deps", "uses", "why":
		return
	case "search", "info", "outdated", "check-update":
		c.installs()
		return
	}
	switch c.name {
	case "dpkg":
		if o.has("l", "L", "s", "S", "p", "q", "qa", "query", "list", "listfiles", "status", "search", "get-selections", "print-architecture", "verify", "V") && !o.has("i", "U", "e", "r", "P") {
			return
		}
	case "brew":
		if len(o.rest) == 0 && o.has("version", "prefix", "cellar", "repository") {
			return
		}
	}
	c.zone(ZoneMachine, "changes the installed programs of the machine")
}
