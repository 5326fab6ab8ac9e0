package permit

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func gitCommands(t table) {
	verbs := gitVerbs()
	t.add("git", func(c *invoked) { gitCommand(c, verbs) })
}

// git is a git command that is being judged. args are the words after the verb.
type git struct {
	*invoked
	verb string
	args []arg
}

// gitVerbs returns the judges of all git commands. A key is the name of a command.
func gitVerbs() map[string]func(*git) {
	verbs := map[string]func(*git){}
	for _, topic := range []func(func(string, func(*git))){gitReading, gitWorking, gitHistory, gitRemotes, gitSteering} {
		topic(func(names string, j func(*git)) {
			for name := range strings.FieldsSeq(names) {
				verbs[name] = j
			}
		})
	}
	return verbs
}

// gitCommand judges git. Its words are options of git, a verb, and the arguments of the
// verb.
func gitCommand(c *invoked, verbs map[string]func(*git)) {
	o := c.options(c.args, "+C= c= exec-path=? html-path man-path info-path p paginate P no-pager no-replace-objects no-lazy-fetch no-optional-locks no-advice "+
		"bare git-dir= work-tree= namespace= config-env=! super-prefix=! literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs attr-source= list-cmds= v version h help")
	if p, ok := o.value("exec-path"); ok && p != (arg{}) {
		c.unknown("--exec-path makes git run other programs")
	}
	for _, setting := range o.values("c") {
		c.gitSetting(setting)
	}
	if len(o.rest) == 0 {
		return
	}
	dir, moved := literal("."), false
	for _, d := range o.values("C") {
		moved = true
		if path.IsAbs(d.text) {
			dir = d
		} else {
			dir = under(dir, d)
		}
	}
	for _, d := range o.values("git-dir") {
		c.read(d)
		c.unknown("the settings of another repository may run programs")
	}
	for _, d := range o.values("work-tree") {
		c.read(d)
	}
	judge := func() {
		c.gitElsewhere()
		c.gitVerb(o.rest, verbs)
	}
	if moved {
		c.in(dir, judge)
		return
	}
	judge()
}

// gitElsewhere records that git works on a repository other than the project's. Nothing
// protects the settings and hooks of that repository.
func (c *invoked) gitElsewhere() {
	for _, dir := range c.dirs {
		at := filepath.ToSlash(dir)
		rel, inside := c.floor.project.holds(at)
		if !inside {
			c.unknown("the settings of a repository outside the project may run programs")
			continue
		}
		if rel != "." && c.wroteBelow(rel) || at != c.ownRepository && c.floor.otherRepository(at) {
			c.zone(ZoneBuild, "the settings of another repository may run programs")
		} else {
			c.ownRepository = at
		}
	}
}

// wroteBelow reports whether an earlier command of the line wrote below a directory.
func (c *invoked) wroteBelow(rel string) bool {
	return slices.ContainsFunc(c.found, func(f Finding) bool { return f.Kind == KindWrite && strings.HasPrefix(f.Subject, rel+"/") })
}

// otherRepository reports whether git, started in this directory of the project, uses
// another repository: a nested one, or a directory in the form of a bare one.
func (f *Floor) otherRepository(dir string) bool {
	for at := dir; ; at = path.Dir(at) {
		info, err := os.Lstat(filepath.FromSlash(at + "/.git"))
		switch {
		case err == nil && at == f.project.path && info.IsDir():
			return false
		case err == nil:
			return !f.ownGitFile(at, info)
		case looksBare(at):
			return true
		case at == f.project.path || at == path.Dir(at):
			return false
		}
	}
}

// ownGitFile reports whether .git is a file that points into the project's own
// repository, as in submodules and additional working trees.
func (f *Floor) ownGitFile(dir string, info os.FileInfo) bool {
	if !info.Mode().IsRegular() || info.Size() > 4096 {
		return false
	}
	data, err := os.ReadFile(filepath.FromSlash(dir + "/.git"))
	to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !ok {
		return false
	}
	s := f.locateFrom(filepath.FromSlash(dir), filepath.FromSlash(to))
	if filepath.IsAbs(to) {
		s = f.locate(to)
	}
	return s.err == nil && s.inside && strings.HasPrefix(s.rel, ".git/")
}

// looksBare reports whether git would treat a directory as a bare repository.
func looksBare(dir string) bool {
	for _, name := range []string{"/HEAD", "/objects", "/refs"} {
		if _, err := os.Lstat(filepath.FromSlash(dir + name)); err != nil {
			return false
		}
	}
	return true
}

func (c *invoked) gitVerb(words []arg, verbs map[string]func(*git)) {
	if !words[0].known {
		c.unknown("cannot determine which git command this is")
		return
	}
	verb := words[0].text
	judge, ok := verbs[verb]
	if !ok {
		c.unknown("Belay does not know what git " + shown(verb) + " does")
		c.touchAll(words[1:])
		return
	}
	if slices.ContainsFunc(words, func(a arg) bool { return strings.HasPrefix(a.text, "--ou") }) {
		c.options(words[1:], "* output=>") // many commands accept --output without documenting it
	}
	g := &git{invoked: c, verb: verb, args: words[1:]}
	judge(g)
	if c.piped && g.opensEditor() {
		c.unknown("git starts an editor, which may run commands from the pipe: pass the text with -m, or use --no-edit")
	}
	if g.bringsFiles() {
		g.bringsLinksTo("git "+verb, g.makesTree())
	}
}

func (g *git) opensEditor() bool {
	o := parseOptions(g.args, "* m= message= F= file= C= c= reuse-message= reedit-message= t= template= S=? u=? s= X= x= exec= onto= strategy= strategy-option= fixup= squash= author= date= cleanup= trailer=")
	if !oneOf(g.verb, "add stage commit merge revert cherry-pick am rebase pull tag notes branch config replace checkout restore reset stash") {
		return false
	}
	if o.may("p", "patch", "i", "interactive") && g.verb != "rebase" { // the answer e starts an editor
		return !g.stdin.known || strings.Contains(g.stdin.text, "e")
	}
	if o.may("e", "edit", "edit-todo", "edit-description") || g.verb == "commit" && o.has("c", "reedit-message") {
		return true
	}
	silent := o.has("m", "message", "F", "file", "C", "reuse-message", "no-edit", "abort", "quit", "n", "no-commit", "h")
	switch g.verb {
	case "commit":
		fixes := o.values("fixup")
		return !silent && (len(fixes) == 0 || strings.Contains(fixes[0].text, ":"))
	case "merge", "revert", "pull":
		return !silent && !o.may("ff-only", "squash", "rebase")
	case "cherry-pick", "am":
		return o.has("continue", "i", "interactive") && !silent
	case "rebase":
		return o.may("i", "interactive", "continue", "edit-todo", "skip")
	case "tag":
		return !silent && o.may("a", "annotate", "s", "sign", "u", "local-user")
	case "notes":
		return !silent && oneOf(word(o.rest, 0), "edit add append")
	default:
		return g.verb == "config" && word(o.rest, 0) == "edit"
	}
}

// makesTree returns the directory that the command creates in the project, if all files
// of the command will be in that directory. Otherwise it returns "".
func (g *git) makesTree() string {
	if g.verb != "clone" && g.verb != "worktree" {
		return ""
	}
	dir := ""
	for i := g.finding; i < len(g.found); i++ {
		if f := &g.found[i]; f.Kind == KindWrite {
			if dir != "" || path.IsAbs(f.Subject) || f.Subject == "." {
				return ""
			}
			dir = f.Subject
		}
	}
	return dir
}

// bringsFiles reports whether the command replaces files of the working tree with files
// from the history.
func (g *git) bringsFiles() bool {
	switch g.verb {
	case "checkout", "switch": // a new branch at the current commit changes no file
		o := parseOptions(g.args, "* b= B= c= create= C= force-create= orphan= conflict= t=? track=? pathspec-from-file=")
		return !o.has("b", "c", "create") || len(o.rest) > 0
	case "stash":
		return !oneOf(word(g.args, 0), "list show drop clear create store export")
	case "worktree":
		return !oneOf(word(g.args, 0), "list lock unlock prune remove")
	case "reset":
		return parseOptions(g.args, "*").has("hard", "merge", "keep")
	case "submodule", "bisect":
		return !oneOf(word(g.args, 0), "status summary log view visualize")
	default:
		return oneOf(g.verb, "merge cherry-pick revert rebase pull clone restore read-tree checkout-index am subtree lfs sparse-checkout filter-branch")
	}
}

// diffOptions are the options of commands that show differences or commits. They include
// options with a value, and options that change more than the format.
const diffOptions = "* output=> G= S= L= O=< l= n= skip= max-count= since= until= after= before= author= committer= grep= format= date= diff-filter= " +
	"inter-hunk-context= U= src-prefix= dst-prefix= line-prefix= ws-error-highlight= diff-algorithm= anchored= exclude= glob= encoding= decorate-refs= " +
	"decorate-refs-exclude= word-diff-regex= no-index rotate-to= skip-to= find-object="

// blameOptions are the options of git blame. Some letters have other meanings than in git
// log.
const blameOptions = "* S=< L= contents=< ignore-revs-file=< ignore-rev= since= until= after= before= date= abbrev= encoding= reverse M=? C=? diff-algorithm= color-by-age color-lines"

// listOptions are the options of git ls-files.
const listOptions = "* x= exclude= X=< exclude-from=< exclude-per-directory= with-tree= format= abbrev=? o others i ignored"

// gitReading adds the git commands that change nothing.
func gitReading(add func(string, func(*git))) {
	add("blame annotate", gitReader(blameOptions))
	add("ls-files", gitReader(listOptions))
	add("check-mailmap", gitReader("* mailmap-file=< mailmap-blob= stdin"))
	add("status log diff show shortlog whatchanged rev-parse rev-list ls-tree describe name-rev merge-base cherry diff-tree diff-index diff-files "+
		"for-each-ref show-ref check-ignore check-attr check-ref-format var count-objects show-branch cat-file verify-commit verify-tag verify-pack version "+
		"range-diff stripspace patch-id get-tar-commit-id merge-tree column show-index last-modified rev-list refs", gitReader(diffOptions))
	add("fmt-merge-msg", func(g *git) { g.options(g.args, "log=? no-log summary no-summary m= message= into-name= F=< file=<") })
	add("grep", gitGrep)
	add("help", func(g *git) {
		if o := g.options(g.args, "* w web i info"); o.has("w", "web") {
			g.zone(ZoneMachine, "opens a browser")
		}
	})
	add("fsck", func(g *git) {
		if o := g.options(g.args, "*"); o.may("lost-found") {
			g.zone(ZoneWorkspace, "")
		}
	})
	add("ls-remote", func(g *git) {
		g.reach("* upload-pack=$ exec=$ o= server-option= sort= q t h b heads tags refs")
	})
	add("archive", gitArchive)
	add("hash-object", gitHashObject)
	add("interpret-trailers", func(g *git) {
		o := g.options(g.args, "* in-place trailer= where= if-exists= if-missing=")
		if o.has("in-place") {
			g.zone(ZoneWorkspace, "")
			g.writeAll(o.rest)
			return
		}
		g.readAll(o.rest)
	})
}

// gitHashObject judges git hash-object. It reads the files whose names are in its
// arguments or on its standard input.
func gitHashObject(g *git) {
	o := g.options(g.args, "* t= path= w stdin stdin-paths")
	if o.has("w") {
		g.zone(ZoneWorkspace, "")
	}
	g.readAll(o.rest)
	if o.has("stdin-paths") {
		g.readLines()
	}
}

func gitReader(list string) func(*git) { return func(g *git) { gitRead(g, list) } }

func gitRead(g *git, list string) {
	o := g.options(g.args, list)
	for _, a := range o.rest {
		if isOutward(a) || o.has("no-index") {
			g.read(a)
		}
	}
	if oneOf(g.verb, "status log diff show shortlog whatchanged blame annotate ls-files ls-tree diff-tree diff-index diff-files cat-file range-diff last-modified") {
		g.shows(o.rest)
	}
	if g.verb == "rev-parse" && o.has("parseopt") {
		return
	}
	if g.verb == "refs" && word(o.rest, 0) != "list" && word(o.rest, 0) != "verify" && word(o.rest, 0) != "exists" {
		g.unknown("Belay does not know what this command does")
	}
}

// isOutward reports whether a word is certainly a path, not a revision, and may lead out
// of the project.
func isOutward(a arg) bool {
	return a.known && (path.IsAbs(a.text) || a.text == ".." || strings.HasPrefix(a.text, "../") || strings.Contains(a.text, "/../"))
}

func gitGrep(g *git) {
	o := g.options(g.args, "* O=?$ open-files-in-pager=?$ f=< e= A= B= C= m= max-depth= max-count= threads= no-index")
	if o.has("O", "open-files-in-pager") {
		g.unknown("it opens files in another program")
	}
	words := o.from(1)
	if o.has("e", "f") {
		words = o.rest
	}
	for _, a := range o.rest {
		if isOutward(a) || o.has("no-index") && a.known && strings.Contains(a.text, "/") {
			g.read(a)
		}
	}
	if paths := g.paths(words); len(paths) > 0 {
		g.asTracked(func() { g.readTrees(paths) })
	} else {
		g.readTree(literal("."))
	}
}

// shows records that the command shows files of the project: the paths among its
// arguments, including REVISION:PATH. Without paths it may show any file.
func (g *git) shows(words []arg) {
	paths := g.paths(words)
	for _, a := range words {
		if rev, file, ok := strings.Cut(a.text, ":"); ok && a.known && rev != "" && file != "" && !a.pattern {
			paths = append(paths, literal(file))
		}
	}
	g.asTracked(func() { g.readAll(paths) })
	if len(paths) == 0 {
		g.looksAround()
	}
}

// paths returns the arguments that name existing files of the project. git does not
// follow links in these commands.
func (g *git) paths(words []arg) []arg {
	return slices.DeleteFunc(slices.Clone(words), func(a arg) bool {
		if !a.known || a.pipe || a.text == "" || isOutward(a) {
			return true
		}
		return !a.pattern && !slices.ContainsFunc(g.spots(a, reads), func(s spot) bool {
			_, err := os.Lstat(filepath.FromSlash(s.path))
			return err == nil && s.inside
		})
	})
}

func gitArchive(g *git) {
	o := g.options(g.args, "* o=> output=> remote= exec=$ format= prefix= add-file=< add-virtual-file= mtime=")
	if o.has("o", "output") {
		g.zone(ZoneWorkspace, "")
	}
	for _, r := range o.values("remote") {
		g.zone(ZoneNetwork, "fetches from the network")
		g.remote(r, ZoneNetwork)
	}
	if paths := g.paths(o.from(1)); len(paths) > 0 {
		g.asTracked(func() { g.readTrees(paths) })
	} else if !o.has("remote", "l", "list") {
		g.readTree(literal("."))
	}
}
