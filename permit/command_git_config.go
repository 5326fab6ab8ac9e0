package permit

import (
	"path"
	"path/filepath"
	"strings"
)

// gitSteering adds the git commands that change settings of git, or make git run
// programs.
func gitSteering(add func(string, func(*git))) {
	add("config", gitConfig)
	add("difftool mergetool", func(g *git) {
		o := g.options(g.args, "* x=$ extcmd=$ t= tool= O=< tool-help")
		if !o.has("tool-help") {
			g.unknown("it runs another program")
		}
	})
	add("for-each-repo", func(g *git) {
		o := g.options(g.args, "+config= keep-going")
		g.unknown("it works on other repositories")
		g.exec(append([]arg{literal("git")}, o.rest...))
	})
	add("hook", func(g *git) {
		g.known(g.args)
		g.zone(ZoneBuild, "runs the hooks of the repository")
	})
	add("credential credential-store credential-cache credential-netrc credential-osxkeychain", func(g *git) {
		g.zone(ZoneMachine, "shows or changes the user's passwords")
	})
	add("gui citool web--browse merge-index merge-one-file sh-setup", func(g *git) { g.unknown("it runs another program") })
}

func gitConfig(g *git) {
	o := g.options(g.args, "* f= file= blob= type= default= comment= value= url= fixed-value all regexp append replace-all global system local worktree get get-all get-regexp get-urlmatch "+
		"get-color get-colorbool l list e edit unset unset-all add rename-section remove-section show-origin show-scope show-names name-only z null int bool path includes t=")
	files := o.values("f", "file")
	changes := o.has("e", "edit", "unset", "unset-all", "add", "replace-all", "rename-section", "remove-section", "append")
	reads := o.has("get", "get-all", "get-regexp", "get-urlmatch", "get-color", "get-colorbool", "l", "list")
	if !changes && !reads {
		switch first := word(o.rest, 0); {
		case first == "get" || first == "list":
			reads = true
		case oneOf(first, "set unset edit rename-section remove-section"):
		default:
			reads = len(o.rest) < 2 // a name without a value only shows the setting
		}
	}
	if reads && !changes {
		g.readAll(files)
		return
	}
	g.zone(ZoneWorkspace, "")
	if o.has("global", "system") {
		g.zone(ZoneMachine, "changes the user's git settings")
	}
	g.writeAll(files)
	g.protect(selfGit, "changes git settings, which can make git run programs")
}

// plainSettings are git settings that are harmless with any value. A name that ends with
// a dot means all settings that begin with it.
const plainSettings = "color. advice. column. status. versionsort. pack. index. feature. apply.whitespace user.name user.email user.useconfigonly author.name author.email committer.name " +
	"committer.email blame.coloring blame.date blame.showroot blame.showemail blame.blankboundary blame.markignoredlines blame.markunblamablelines " +
	"core.quotepath core.autocrlf core.safecrlf core.eol core.abbrev core.longpaths core.filemode core.ignorecase core.precomposeunicode core.commentchar core.bigfilethreshold " +
	"core.compression core.preloadindex core.untrackedcache core.logallrefupdates core.whitespace core.bare core.checkstat core.trustctime core.sparsecheckout " +
	"commit.gpgsign commit.verbose commit.cleanup commit.status tag.gpgsign tag.sort branch.sort branch.autosetupmerge branch.autosetuprebase init.defaultbranch " +
	"diff.algorithm diff.renames diff.renamelimit diff.context diff.interhunkcontext diff.noprefix diff.mnemonicprefix diff.colormoved diff.colormovedws diff.submodule " +
	"diff.ignoresubmodules diff.indentheuristic diff.relative diff.suppressblankempty diff.wserrorhighlight diff.stat diff.dirstat diff.statgraphwidth " +
	"log.date log.decorate log.follow log.abbrevcommit log.showroot log.mailmap log.showsignature merge.conflictstyle merge.ff merge.renames merge.renamelimit merge.log merge.stat merge.autostash " +
	"pull.rebase pull.ff push.default push.autosetupremote push.followtags rebase.autostash rebase.autosquash rebase.updaterefs rebase.stat fetch.prune fetch.prunetags fetch.parallel " +
	"fetch.fsckobjects transfer.fsckobjects receive.fsckobjects http.postbuffer http.version http.lowspeedlimit http.lowspeedtime http.maxrequests protocol.version gc.auto gc.autodetach " +
	"stash.showpatch stash.showstat grep.linenumber grep.patterntype grep.column grep.fullname format.pretty format.signoff format.numbered format.attach rerere.enabled rerere.autoupdate " +
	"checkout.defaultremote checkout.guess checkout.workers submodule.fetchjobs submodule.recurse maintenance.auto safe.barerepository"

// fileSettings are git settings whose value is a file that git reads.
const fileSettings = "blame.ignorerevsfile core.excludesfile diff.orderfile mailmap.file commit.template format.signaturefile user.signingkey"

// gitSetting judges the value of git -c, which is name=value. An unknown setting may make
// git run a program, or read or write a file.
func (c *invoked) gitSetting(setting arg) {
	if !setting.known {
		c.unknown("cannot determine which git setting it changes")
		return
	}
	name, value, _ := strings.Cut(setting.text, "=")
	name = strings.ToLower(name)
	for plain := range strings.FieldsSeq(plainSettings) {
		if name == plain || strings.HasSuffix(plain, ".") && strings.HasPrefix(name, plain) {
			return
		}
	}
	if oneOf(name, fileSettings) {
		c.read(c.expandTilde(value))
		return
	}
	if section, _, _ := strings.Cut(name, "."); section == "pager" || path.Ext(name) == ".pager" || path.Ext(name) == ".editor" {
		if isPlainPager(value) || isPlainEditor(value) {
			return
		}
	}
	c.unknown("the setting " + shown(name) + " may make git run a program, or read or write a file")
	if name == "core.hookspath" {
		c.protect(selfGit, "git would run hooks from another directory")
	}
	if command, ok := strings.CutPrefix(value, "!"); ok {
		c.child(literal(command))
	} else if strings.Contains(value, " ") {
		c.child(literal(value))
	}
}

// expandTilde replaces ~ in a path with the home directory, as git does.
func (c *invoked) expandTilde(path string) arg {
	native, known := c.floor.expanded(path)
	return arg{text: filepath.ToSlash(native), known: known}
}
