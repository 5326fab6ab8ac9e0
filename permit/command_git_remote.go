package permit

import "strings"

// gitRemotes adds the git commands that connect to other repositories.
func gitRemotes(add func(string, func(*git))) {
	fetching := "* upload-pack=$ o= server-option= depth= deepen= shallow-since= shallow-exclude= j= jobs= refmap= negotiation-tip= filter= recurse-submodules=? " +
		"s= strategy= X= strategy-option= r=? rebase=? S=? gpg-sign=? cleanup= set-upstream force f bundle-uri="
	add("fetch pull fetch-pack", func(g *git) { g.reach(fetching) })
	add("clone", gitClone)
	add("push", gitPush)
	add("remote", gitRemote)
	add("submodule", gitSubmodule)
	add("subtree", gitSubtree)
	add("lfs", gitLargeFiles)
	add("svn p4 cvsimport cvsexportcommit", func(g *git) {
		g.known(g.args)
		if oneOf(word(g.args, 0), "fetch rebase clone sync log info") {
			g.zone(ZoneNetwork, "fetches from the network")
			return
		}
		g.zone(ZoneExternal, "changes another repository")
	})
	add("send-email imap-send", func(g *git) {
		g.options(g.args, "* sendmail-cmd=$ smtp-server=$ to-cmd=$ cc-cmd=$ header-cmd=$")
		g.zone(ZoneExternal, "sends mail")
	})
	add("request-pull", func(g *git) { g.reach("*") })
	add("daemon http-backend http-push http-fetch send-pack receive-pack upload-pack upload-archive shell instaweb remote-http remote-https remote-ext remote-fd", func(g *git) {
		g.unknown("it serves or changes a repository without the usual checks of git")
	})
}

// reach records that the command connects to the repository that its first argument
// names. It returns the parsed arguments.
func (g *git) reach(list string) *options {
	o := g.options(g.args, list)
	g.zone(ZoneNetwork, "fetches from the network")
	if len(o.rest) > 0 {
		least := ZoneNetwork
		if oneOf(g.verb, "fetch pull fetch-pack request-pull") && (strings.Contains(o.rest[0].text, "://") || isRemote(o.rest[0])) {
			least = ZoneExternal // the server learns which commits exist on this machine
			g.zone(least, "uses a registry, proxy or remote that the command names")
		}
		g.remote(o.rest[0], least)
	}
	for _, u := range o.values("bundle-uri") {
		g.fetch(u)
	}
	for _, s := range o.values("s", "strategy") {
		if g.verb == "pull" && (!s.known || !oneOf(s.text, mergeStrategies)) {
			g.unknown("git runs an unknown merge strategy as a program")
		}
	}
	return o
}

// remote records that git uses another repository. a is a URL, a path, or the name of a
// remote of the project.
func (g *git) remote(a arg, least Zone) {
	scheme, rest, helper := strings.Cut(a.text, "::")
	switch {
	case !a.known:
	case helper && !strings.ContainsAny(scheme, "/:@"): // ext::COMMAND runs a command; any other PREFIX:: runs the program git-remote-PREFIX
		g.unknown("git runs the program git-remote-" + shown(scheme))
		if scheme == "ext" {
			g.child(literal(rest))
		}
	case strings.Contains(a.text, "://"), isRemote(a):
		g.address(a, least)
	case strings.HasPrefix(a.text, "/"), strings.HasPrefix(a.text, "."), strings.HasPrefix(a.text, "~"):
		g.read(a)
		if least == ZoneExternal {
			g.write(a)
		}
	}
}

func gitClone(g *git) {
	o := g.reach("* u=$ upload-pack=$ template= c= config= o= origin= b= branch= reference=< reference-if-able=< separate-git-dir= depth= shallow-since= " +
		"shallow-exclude= j= jobs= filter= server-option= recurse-submodules=? recursive=? bundle-uri= ref-format= revision=")
	for _, setting := range o.values("c", "config") {
		g.gitSetting(setting)
	}
	g.gitTemplate(o)
	switch {
	case len(o.rest) > 1:
		g.write(o.rest[1])
		g.fillsHolder(o.rest[1])
	case len(o.rest) == 1 && o.rest[0].known:
		g.write(cloneName(o.rest[0]))
	}
	if len(o.rest) > 0 && o.rest[0].known && !strings.Contains(o.rest[0].text, ":") {
		g.read(o.rest[0]) // the repository is on this machine
	}
}

// cloneName returns the name of the directory that git clone creates for a URL.
func cloneName(a arg) arg {
	name := strings.TrimRight(a.text, "/")
	return literal(strings.TrimSuffix(name[strings.LastIndexAny(name, "/:")+1:], ".git"))
}

func gitPush(g *git) {
	o := g.options(g.args, "* receive-pack=$ exec=$ o= push-option= repo= recurse-submodules= signed=? force-with-lease=? f force mirror d delete prune u set-upstream n dry-run all branches tags")
	g.zone(ZoneExternal, "changes another repository")
	for _, r := range o.values("repo") {
		g.remote(r, ZoneExternal)
	}
	if len(o.rest) > 0 {
		g.remote(o.rest[0], ZoneExternal)
	}
	destroys := o.has("f", "force", "force-with-lease", "mirror", "d", "delete", "prune")
	for _, ref := range o.rest {
		destroys = destroys || strings.HasPrefix(ref.text, "+") || strings.HasPrefix(ref.text, ":") && ref.text != ":"
	}
	if destroys {
		g.protect(destroyPush, "rewrites or deletes commits or branches of another repository")
	}
}

func gitRemote(g *git) {
	o := g.options(g.args, "* t= m= mirror=? f tags")
	switch word(o.rest, 0) {
	case "", "get-url":
	case "show", "update", "prune":
		g.zone(ZoneNetwork, "fetches from the network")
	default: // add, remove, rename, set-url, set-head, set-branches
		g.zone(ZoneWorkspace, "")
		for _, a := range o.from(2) {
			g.remote(a, ZoneNetwork)
		}
		g.protect(selfGit, "changes where git fetches from and pushes to, in .git/config")
	}
}

func gitSubmodule(g *git) {
	g.known(g.args)
	o := parseOptions(g.args, "+* q quiet cached")
	verb := word(o.rest, 0)
	words := o.from(1)
	switch verb {
	case "", "status", "summary":
	case "foreach":
		g.zone(ZoneBuild, "runs a command in every submodule")
		f := parseOptions(words, "+* recursive q quiet")
		if len(f.rest) == 1 {
			g.child(f.rest[0])
		} else {
			g.exec(f.rest)
		}
	case "add", "update":
		g.zone(ZoneNetwork, "fetches from the network")
		s := g.options(words, "* b= branch= name= reference=< depth= j= jobs= filter= f force rebase merge checkout init recursive remote")
		if verb == "add" && len(s.rest) > 0 {
			g.remote(s.rest[0], ZoneNetwork)
			g.writeAll(s.from(1))
			for _, to := range s.from(1) {
				g.fillsHolder(to)
			}
			if len(s.rest) == 1 {
				g.write(cloneName(s.rest[0]))
			}
		}
		if s.has("f", "force") && verb == "update" {
			g.protect(destroyReset, "discards uncommitted changes")
		}
	case "deinit":
		g.zone(ZoneWorkspace, "")
		g.protect(destroyReset, "empties the working tree of a submodule")
	case "init", "sync", "absorbgitdirs":
		g.zone(ZoneWorkspace, "")
	case "set-url", "set-branch":
		g.zone(ZoneWorkspace, "")
		g.protect(selfGit, "changes where git fetches from")
	default:
		g.unknown("Belay does not know what this command does")
	}
}

func gitSubtree(g *git) {
	o := g.options(g.args, "* P=> prefix=> m= message= b= branch= annotate= onto= d")
	for _, prefix := range o.values("P", "prefix") {
		g.fillsHolder(prefix)
	}
	switch word(o.rest, 0) {
	case "add", "pull":
		g.zone(ZoneNetwork, "fetches from the network")
		if len(o.rest) > 1 {
			g.remote(o.rest[1], ZoneNetwork)
		}
	case "push":
		g.zone(ZoneExternal, "changes another repository")
		if len(o.rest) > 1 {
			g.remote(o.rest[1], ZoneExternal)
		}
	default:
		g.zone(ZoneWorkspace, "")
	}
}

func gitLargeFiles(g *git) {
	g.known(g.args)
	switch word(g.args, 0) {
	case "", "version", "env", "ls-files", "status", "logs", "pointer", "fsck", "help":
	case "track", "untrack", "checkout":
		g.zone(ZoneWorkspace, "")
	case "pull", "fetch", "clone", "locks":
		g.zone(ZoneNetwork, "fetches from the network")
	case "push", "lock", "unlock":
		g.zone(ZoneExternal, "changes another repository")
	case "install", "uninstall", "update":
		g.zone(ZoneWorkspace, "")
		g.protect(selfGit, "changes hooks and settings of git")
	case "migrate":
		g.zone(ZoneWorkspace, "")
		g.protect(destroyGit, "rewrites the history")
	case "prune":
		g.zone(ZoneWorkspace, "")
		g.protect(destroyFiles, "removes old versions of files")
	default:
		g.unknown("Belay does not know what this command does")
	}
}
