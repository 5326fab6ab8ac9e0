package permit

import "strings"

// gitHistory adds the git commands that rewrite commits or references.
func gitHistory(add func(string, func(*git))) {
	add("rebase", gitRebase)
	add("filter-branch", gitFilterBranch)
	add("filter-repo", func(g *git) {
		g.known(g.args)
		g.unknown("it runs Python code")
		g.protect(destroyGit, "rewrites the history")
	})
	add("replace fast-import", func(g *git) {
		o := g.options(g.args, "* l list format= export-marks=> import-marks=< relative-marks cat-blob-fd= export-pack-edges=>")
		if g.verb == "replace" && (len(g.args) == 0 || o.has("l", "list")) {
			return
		}
		g.zone(ZoneWorkspace, "")
		g.protect(destroyGit, "rewrites the history")
	})
	add("fast-export", func(g *git) {
		if o := g.options(g.args, "* export-marks=> import-marks=< import-marks-if-exists=<"); o.has("export-marks") {
			g.zone(ZoneWorkspace, "")
		}
	})
	add("branch", gitBranch)
	add("tag", gitTag)
	add("reflog", gitReflog)
	add("gc prune maintenance", gitGarbage)
	add("update-ref", gitUpdateRef)
	add("symbolic-ref", func(g *git) {
		o := g.options(g.args, "* d delete m= q quiet short recurse")
		if len(o.rest) > 1 || o.has("d", "delete") {
			g.zone(ZoneWorkspace, "")
		}
		if o.has("d", "delete") {
			g.protect(destroyGit, "deletes a reference")
		}
	})
	add("bisect", gitBisect)
}

func gitRebase(g *git) {
	o := g.options(g.args, "* x= exec= s= strategy= X= strategy-option= onto= C= S=? gpg-sign=? whitespace= empty= r=? rebase-merges=? f i continue abort skip quit show-current-patch edit-todo")
	g.zone(ZoneWorkspace, "")
	for _, s := range o.values("s", "strategy") {
		if !s.known || !oneOf(s.text, mergeStrategies) {
			g.unknown("git runs an unknown merge strategy as a program")
		}
	}
	for _, command := range o.values("x", "exec") {
		g.child(command)
	}
	if !o.has("continue", "abort", "skip", "quit", "show-current-patch") {
		g.protect(destroyGit, "rewrites commits")
	}
}

func gitFilterBranch(g *git) {
	filters := []string{"setup", "env-filter", "tree-filter", "index-filter", "parent-filter", "msg-filter", "commit-filter", "tag-name-filter"}
	o := g.options(g.args, "* "+strings.Join(filters, "= ")+"= subdirectory-filter= original= d=> state-branch= f force prune-empty")
	g.zone(ZoneWorkspace, "")
	for _, command := range o.values(filters...) {
		g.child(command)
	}
	g.protect(destroyGit, "rewrites the history")
}

func gitBranch(g *git) {
	o := g.options(g.args, "* d delete D m move M c copy C f force l list a all r remotes v u= set-upstream-to= unset-upstream t=? track=? contains=? no-contains=? merged=? no-merged=? "+
		"points-at= format= sort= color=? column=? abbrev=? show-current edit-description create-reflog i q")
	lists := o.has("l", "list", "a", "all", "r", "remotes", "contains", "no-contains", "merged", "no-merged", "points-at", "show-current")
	changes := o.has("d", "delete", "D", "m", "move", "M", "c", "copy", "C", "f", "force", "u", "set-upstream-to", "unset-upstream", "edit-description")
	if changes || len(o.rest) > 0 && !lists {
		g.zone(ZoneWorkspace, "")
	}
	if o.has("D", "M", "C", "f", "force") {
		g.protect(destroyGit, "deletes or moves a branch, even if it is not merged")
	}
}

func gitTag(g *git) {
	o := g.options(g.args, "* d delete f force a s u= local-user= m= message= F=< file=< l list n=? contains=? no-contains=? merged=? no-merged=? points-at= format= sort= v verify cleanup= "+
		"color=? column=? e edit trailer= i")
	lists := o.has("l", "list", "n", "contains", "no-contains", "merged", "no-merged", "points-at", "v", "verify")
	if len(o.rest) > 0 && !lists {
		g.zone(ZoneWorkspace, "")
	}
	if o.has("d", "delete", "f", "force") {
		g.protect(destroyGit, "deletes or moves a tag")
	}
}

func gitReflog(g *git) {
	switch word(g.options(g.args, "*").rest, 0) {
	case "expire", "delete", "drop", "write":
		g.zone(ZoneWorkspace, "")
		g.protect(destroyGit, "removes reflog entries, which are needed to find old commits")
	}
}

func gitGarbage(g *git) {
	o := g.options(g.args, "* prune=? task= schedule= expire= n dry-run aggressive auto no-prune")
	g.zone(ZoneWorkspace, "")
	switch {
	case g.verb == "maintenance" && word(o.rest, 0) != "run":
		g.zone(ZoneMachine, "schedules git to run later")
	case o.has("n", "dry-run"):
	case g.verb == "prune", o.has("prune"):
		g.protect(destroyGit, "removes commits that no branch or tag contains")
	}
}

func gitUpdateRef(g *git) {
	g.options(g.args, "* m= d stdin z no-deref create-reflog")
	g.zone(ZoneWorkspace, "")
	g.protect(destroyGit, "moves or deletes a reference without a check")
}

func gitBisect(g *git) {
	g.known(g.args)
	switch word(g.args, 0) {
	case "view", "visualize":
		if first := word(g.args, 1); first != "" && !strings.HasPrefix(first, "-") {
			g.exec(append([]arg{literal("git")}, g.args[1:]...)) // bisect view runs git with these arguments
		} else {
			gitRead(&git{invoked: g.invoked, verb: "log", args: g.args[1:]}, diffOptions)
		}
	case "log", "terms", "help", "":
	case "run":
		g.zone(ZoneBuild, "runs a command for every commit")
		g.exec(g.args[1:])
	default:
		g.zone(ZoneWorkspace, "")
	}
}
