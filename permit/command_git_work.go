package permit

import "strings"

// gitWorking adds the git commands that change the working tree or the index, or add to
// the history.
func gitWorking(add func(string, func(*git))) {
	add("add stage", func(g *git) { g.changes("* chmod= pathspec-from-file=<") })
	add("commit", func(g *git) {
		g.changes("* m= message= F=< file=< t=< template=< C= c= reuse-message= reedit-message= author= date= fixup= squash= cleanup= trailer= S=? gpg-sign=? u=? " +
			"untracked-files=? pathspec-from-file=<")
	})
	add("mv", gitMove)
	add("rm", gitRemove)
	add("merge cherry-pick revert", gitMerge)
	add("merge-file", gitMergeFile)
	add("notes rerere write-tree commit-tree mktag pack-refs pack-objects prune-packed multi-pack-index commit-graph repack bugreport diagnose unpack-file backfill", func(g *git) {
		g.changes("* F=< file=< m= message= C= c= k= o=> output-directory=>")
	})
	add("update-index", gitUpdateIndex)
	add("mktree unpack-objects index-pack", func(g *git) {
		g.changes("* o=>")
		g.unknown("it writes unknown objects into the repository")
	})
	add("sparse-checkout", func(g *git) {
		if o := g.options(g.args, "*"); word(o.rest, 0) != "list" {
			g.unknown("it removes files from the working tree or restores them")
		}
	})
	add("read-tree", func(g *git) {
		o := g.changes("* prefix= index-output=> exclude-per-directory=")
		if o.may("u", "reset") {
			g.protect(destroyReset, "overwrites files of the working tree")
		}
		for _, prefix := range o.values("prefix") {
			g.write(prefix)
			g.fillsHolder(prefix)
		}
	})
	add("checkout-index", func(g *git) {
		o := g.changes("* prefix=> stage= f force a all")
		for _, prefix := range o.values("prefix") {
			if !strings.HasSuffix(prefix.text, "/") {
				g.unknown("cannot determine which files it writes")
			}
			g.fillsHolder(prefix)
		}
		g.writeAll(o.rest)
		if o.has("f", "force") {
			g.protect(destroyReset, "overwrites files of the working tree")
		}
	})
	add("apply", gitApply)
	add("am", gitMailbox)
	add("format-patch", func(g *git) {
		o := g.options(g.args, "* o=> output-directory=> output=> stdout base= to= cc= from=? in-reply-to= v= reroll-count= subject-prefix= n N start-number= suffix= signature= "+
			"signature-file=< cover-from-description= description-file=< interdiff= range-diff=")
		if !o.has("stdout") {
			g.zone(ZoneWorkspace, "")
		}
		for _, suffix := range o.values("suffix") {
			if strings.Contains(suffix.text, "/") {
				g.unknown("cannot determine which files it writes")
			}
		}
	})
	add("bundle", gitBundle)
	add("stash", gitStash)
	add("checkout", gitCheckout)
	add("switch", gitSwitch)
	add("restore", gitRestore)
	add("reset", gitReset)
	add("clean", gitClean)
	add("worktree", gitWorktree)
	add("init init-db", gitInit)
}

// changes parses the arguments of a git command that changes the project.
func (g *git) changes(list string) *options {
	o := g.options(g.args, list)
	g.zone(ZoneWorkspace, "")
	for _, a := range o.rest {
		if isOutward(a) {
			g.read(a)
		}
	}
	return o
}

func gitMove(g *git) {
	o := g.changes("* f force k n dry-run v")
	if len(o.rest) == 0 {
		return
	}
	for _, a := range o.rest[:len(o.rest)-1] {
		g.remove(a)
	}
	to := g.targets(o.rest, o)
	g.writeAll(to)
	g.becomes(o.rest[:len(o.rest)-1], to)
	g.bringsCopies(o.rest[:len(o.rest)-1])
}

func gitRemove(g *git) {
	o := g.changes("* r f force cached n dry-run q quiet pathspec-from-file=<")
	if o.has("cached", "n", "dry-run") {
		return
	}
	for _, a := range o.rest {
		g.remove(a)
	}
	if o.has("r", "f", "force") {
		g.protect(destroyFiles, "removes whole directories, or files that are not committed")
	}
}

// mergeStrategies are git's own merge strategies. Any other strategy is a program.
const mergeStrategies = "ort recursive resolve octopus ours subtree"

func gitMerge(g *git) {
	o := g.changes("* s= strategy= X= strategy-option= m= message= F=< file=< S=? gpg-sign=? into-name= cleanup= mainline= log=? abort quit continue skip")
	for _, s := range o.values("s", "strategy") {
		if !s.known || !oneOf(s.text, mergeStrategies) {
			g.unknown("git runs an unknown merge strategy as a program")
		}
	}
}

func gitMergeFile(g *git) {
	o := g.options(g.args, "* L= p stdout object-id marker-size= diff-algorithm=")
	g.readAll(o.rest)
	if !o.has("p", "stdout") && len(o.rest) > 0 {
		g.zone(ZoneWorkspace, "")
		g.write(o.rest[0])
	}
}

func gitApply(g *git) {
	o := g.options(g.args, "* p= directory= exclude= include= C= whitespace= inaccurate-eof build-fake-ancestor=> cached index stat numstat summary check unsafe-paths! 3 3way R reverse")
	strip, _ := o.value("p")
	if o.has("stat", "numstat", "summary", "check") && !o.may("apply") {
		g.readAll(o.rest)
		return
	}
	g.zone(ZoneWorkspace, "")
	judge := func() {
		for _, f := range o.rest {
			g.patchFile(f, strip.text)
		}
		if len(o.rest) == 0 {
			g.patch(g.stdin, strip.text)
		}
	}
	if dir, ok := o.value("directory"); ok {
		g.write(under(dir, literal("{}")))
		g.beginsNames(dir)
	}
	judge()
}

func gitMailbox(g *git) {
	o := g.options(g.args, "* p= directory= exclude= include= C= whitespace= patch-format= S=? gpg-sign=? resolvemsg= quoted-cr= empty= abort continue r resolved skip quit "+
		"show-current-patch=? retry allow-empty")
	g.zone(ZoneWorkspace, "")
	if o.has("abort", "continue", "r", "resolved", "skip", "quit", "show-current-patch", "retry", "allow-empty") {
		return
	}
	strip, _ := o.value("p")
	for _, dir := range o.values("directory") {
		g.write(under(dir, literal("{}")))
		g.beginsNames(dir)
	}
	for _, f := range o.rest {
		g.patchFile(f, strip.text)
	}
	if len(o.rest) == 0 {
		g.patch(g.stdin, strip.text)
	}
}

func gitBundle(g *git) {
	o := g.options(g.args, "* version= progress q quiet")
	switch word(o.rest, 0) {
	case "create":
		g.zone(ZoneWorkspace, "")
		if len(o.rest) > 1 {
			g.emit(o.rest[1])
		}
	case "verify", "list-heads":
		g.readAll(o.from(1))
	default:
		g.zone(ZoneWorkspace, "")
		g.readAll(o.from(1))
	}
}

// gitUpdateIndex judges git update-index. It puts files into the index, and a later
// command can copy them into the working tree.
func gitUpdateIndex(g *git) {
	o := g.changes("* cacheinfo= chmod= index-info stdin index-version= z add remove refresh q")
	if o.has("index-info", "stdin") {
		g.unknown("cannot determine which files it changes")
	}
	for _, info := range o.values("cacheinfo") { // mode,object,path
		if parts := strings.SplitN(info.text, ",", 3); len(parts) == 3 {
			g.write(arg{text: parts[2], known: info.known})
		}
	}
	if o.has("cacheinfo") { // mode object path
		g.writeAll(o.rest)
	}
}

func gitStash(g *git) {
	o := g.options(g.args, "* m= message= pathspec-from-file=<")
	switch word(o.rest, 0) {
	case "list", "show":
	case "drop", "clear":
		g.zone(ZoneWorkspace, "")
		g.protect(destroyGit, "discards stashed changes")
	case "", "push", "save", "apply", "pop", "branch", "create", "store", "export", "import":
		g.zone(ZoneWorkspace, "")
		if word(o.rest, 0) == "push" {
			g.writeAll(o.from(1))
		}
	default:
		g.unknown("Belay does not know what this command does")
	}
}

// gitCheckout judges git checkout. With a branch, it switches to that branch. With paths,
// it discards changes to these files.
func gitCheckout(g *git) {
	o := g.changes("* b= B= t=? track=? orphan= conflict= pathspec-from-file=< f force m merge d detach p patch ours theirs l q guess no-guess overlay ignore-skip-worktree-bits")
	dashes := false
	for _, a := range g.args {
		dashes = dashes || a.known && a.text == "--"
	}
	switch {
	case o.has("f", "force"):
		g.protect(destroyReset, "discards uncommitted changes")
	case o.has("B"):
		g.protect(destroyGit, "may move an existing branch")
	case o.has("b", "orphan", "t", "track", "d", "detach", "p", "patch") && !dashes:
	case dashes && !endsWithDashes(g.args), o.has("pathspec-from-file", "ours", "theirs"), len(o.rest) > 1, len(o.rest) == 1 && looksLikePath(g, o.rest[0]):
		g.protect(destroyReset, "discards uncommitted changes")
		g.asTracked(func() { g.overwriteAll(o.rest) }) // this is harmless for a word that is a branch
	}
}

func endsWithDashes(args []arg) bool { return word(args, len(args)-1) == "--" }

// looksLikePath reports whether a word is more likely a path than a branch.
func looksLikePath(g *git, a arg) bool {
	if !a.known || a.pattern || isOutward(a) || strings.HasPrefix(a.text, ".") || strings.HasPrefix(a.text, ":") || strings.HasSuffix(a.text, "/") {
		return true
	}
	return g.exists(a)
}

func gitSwitch(g *git) {
	o := g.changes("* c= create= C= force-create= orphan= conflict= t=? track=? f force discard-changes")
	if o.has("f", "force", "discard-changes") {
		g.protect(destroyReset, "discards uncommitted changes")
	}
	if o.has("C", "force-create") {
		g.protect(destroyGit, "may move an existing branch")
	}
}

func gitRestore(g *git) {
	o := g.changes("* s= source= conflict= pathspec-from-file=< S staged W worktree p patch")
	if o.has("W", "worktree") || !o.has("S", "staged") {
		g.asTracked(func() { g.overwriteAll(o.rest) })
		g.protect(destroyReset, "discards uncommitted changes")
	}
}

func gitReset(g *git) {
	o := g.changes("* hard merge keep soft mixed N q p patch pathspec-from-file=<")
	if o.has("hard", "merge", "keep") {
		g.protect(destroyReset, "discards uncommitted changes")
	}
}

func gitClean(g *git) {
	o := g.options(g.args, "* f force n dry-run e= exclude= i interactive")
	if o.has("n", "dry-run") {
		return
	}
	g.zone(ZoneWorkspace, "")
	if o.has("f", "force", "i", "interactive") {
		g.protect(destroyFiles, "removes all files that git does not track")
	}
	for _, a := range o.rest {
		g.remove(a)
	}
}

func gitWorktree(g *git) {
	o := g.options(g.args, "* b= B= f force reason= expire= lock detach orphan")
	switch word(o.rest, 0) {
	case "list", "":
	case "add":
		g.zone(ZoneWorkspace, "")
		if len(o.rest) > 1 {
			g.write(o.rest[1])
			g.fillsHolder(o.rest[1])
		}
		if o.has("B") {
			g.protect(destroyGit, "may move an existing branch")
		}
	case "remove":
		g.zone(ZoneWorkspace, "")
		if o.has("f", "force") {
			g.protect(destroyGit, "removes a working tree with its changes")
		}
	case "move":
		g.zone(ZoneWorkspace, "")
		g.writeAll(o.from(2))
		for _, to := range o.from(2) {
			g.fillsHolder(to)
		}
	default:
		g.zone(ZoneWorkspace, "")
	}
}

func gitInit(g *git) {
	o := g.options(g.args, "* template= separate-git-dir= object-format= ref-format= b= initial-branch= shared=? q quiet bare")
	g.zone(ZoneWorkspace, "")
	g.gitTemplate(o)
	for _, a := range o.rest { // git creates the directory, and .git in it
		g.write(a)
	}
}

// gitTemplate judges two options. --template can bring hooks into the repository.
// --separate-git-dir puts the settings of git into a directory that nothing protects.
func (g *git) gitTemplate(o *options) {
	if d, ok := o.value("separate-git-dir"); ok {
		g.write(d)
		g.protect(selfGit, "git's settings would be in an unprotected directory")
	}
	if t, ok := o.value("template"); ok && (!t.known || t.text != "") {
		g.protect(selfGit, "a template can add git hooks")
	}
}
