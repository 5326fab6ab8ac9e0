package permit

import (
	"path"
	"slices"
	"strings"
)

func searchCommands(t table) {
	t.add("grep egrep fgrep rgrep ggrep zgrep zegrep zfgrep bzgrep xzgrep", grepCommand("e regexp f file", "* e= regexp= f=< file=< A= B= C= m= d= D= include= exclude= exclude-from=< exclude-dir= "+
		"color=? colour=? label= binary-files= max-count= after-context= before-context= context= directories= devices= group-separator="))
	t.add("rg", grepCommand("e regexp f file files type-list", "* pre=$ hostname-bin=$ pre-glob= e= regexp= f=< file=< A= B= C= m= j= M= r= replace= g= glob= iglob= t= type= T= type-not= E= encoding= "+
		"d= max-depth= type-add= type-clear= ignore-file=< context-separator= path-separator= field-context-separator= field-match-separator= "+
		"color= colors= sort= sortr= engine= max-filesize= max-count= max-columns= after-context= before-context= context= threads= dfa-size-limit= regex-size-limit= "+
		"hyperlink-format= generate= files"))
	t.add("ag", grepCommand("g", "* pager=$ g= A= B= C= G= m= p=< path-to-ignore=< ignore= ignore-dir= depth= W= width= file-search-regex= max-count= after= before= context="))
	t.add("ack ack-grep", grepCommand("g f match", "* pager=?$ ackrc=! output=! A= B= C= m= x=! g= type= ignore-dir= ignore-directory= ignore-file= files-from=! type-set= type-add= type-del= "+
		"match= after-context= before-context= context= max-count= env f"))
	t.add("fd fdfind", fdCommand)
	t.add("locate plocate mlocate mdfind", func(c *invoked) {
		c.known(c.args)
		c.read(literal("/")) // their index has the names of all files of the machine
	})
}

// grepCommand judges programs that search files for a pattern. patterns are the options
// whose value is the pattern. Without such an option, the first argument is the pattern.
// rg, ag, ack and rgrep always search directories. grep and its other variants do so only
// with -r, -R or -d recurse. A program that searches directories uses the current directory
// if it has no path. rg, ag and ack then search their standard input instead, if it is a
// pipe.
func grepCommand(patterns, list string) judge {
	given := strings.Fields(patterns)
	return func(c *invoked) {
		o := c.options(c.args, list)
		files := o.from(1)
		if o.has(given...) {
			files = o.rest
		}
		follows := o.may("R", "dereference-recursive") && !oneOf(c.name, "rg ag ack ack-grep") || o.may("follow") ||
			c.name == "rg" && o.has("L") || c.name == "ag" && o.has("f")
		deep := oneOf(c.name, "rg ag ack ack-grep rgrep") || o.may("r", "R", "recursive", "dereference-recursive")
		if how, ok := o.value("d", "directories"); ok && how.text == "recurse" && c.name != "rg" {
			deep = true
		}
		switch {
		case !deep:
			c.readAll(files)
		case len(files) > 0:
			c.readFollowing(files, follows)
		case !c.piped || !oneOf(c.name, "rg ag ack ack-grep"):
			c.readFollowing([]arg{literal(".")}, follows)
		}
	}
}

// fdCommand judges fd. It is like find, with another syntax.
func fdCommand(c *invoked) {
	args, run := c.args, []arg(nil)
	for i, a := range args {
		if a.known && (oneOf(a.text, "-x -X --exec --exec-batch") || strings.HasPrefix(a.text, "--exec=") || strings.HasPrefix(a.text, "--exec-batch=")) {
			run = args[i+1:]
			if _, first, ok := strings.Cut(a.text, "="); ok {
				run = append([]arg{literal(first)}, run...)
			}
			args = args[:i]
			break
		}
	}
	o := c.options(args, "* E= exclude= t= type= e= extension= d= max-depth= min-depth= exact-depth= c= color= o= owner= S= size= j= threads= and= ignore-file=< "+
		"base-directory=< C=< search-path=< changed-within= changed-before= path-separator= max-results= format= batch-size= strip-cwd-prefix=? x! X! exec! exec-batch!")
	starts := append(o.from(1), o.values("base-directory", "C", "search-path")...)
	c.readAll(o.from(1))
	if len(starts) == 0 {
		c.looksAround()
		starts = []arg{literal(".")}
	}
	if o.has("L", "follow") {
		c.readFollowing(starts, true)
	}
	if len(run) > 0 {
		c.runOnEach(run, starts, o.has("e", "extension"), false)
	}
}

// runOnEach records that a command runs on the files that a search finds below some
// directories. named says that the search finds only files with certain names. plain says
// that it finds no links.
func (c *invoked) runOnEach(run, starts []arg, named, plain bool) {
	for i, a := range run {
		if a.known && a.text == ";" {
			run = run[:i]
			break
		}
	}
	for _, start := range c.few(starts) {
		found := start
		found.tree = true
		if named {
			found = under(start, literal("{}"))
			found.below = true
		}
		found.taken, found.follows = new(bool), !plain
		words := make([]arg, 0, len(run)+1)
		given := false
		for _, a := range run {
			w, is, part := standIn(a, found)
			words, given = append(words, w), given || is
			if is && !part && w.text != found.text && found.follows { // files below the directory may be links
				c.readFollowing([]arg{start}, true)
			}
			if part {
				c.unknown("file names become part of a command")
			}
		}
		if !given && c.name != "find" && c.name != "gfind" {
			words = append(words, found)
		}
		from := len(c.found)
		c.feed(words, arg{}, false)
		if slices.ContainsFunc(c.found[min(from, len(c.found)):], removesFiles) {
			c.protect(destroyFiles, "removes the files that a search finds")
		}
	}
}

// removesFiles reports whether a finding is a command that removes its arguments.
func removesFiles(f Finding) bool {
	return f.Kind == KindCommand && len(f.words) > 0 && oneOf(path.Base(f.words[0]), "rm grm unlink shred trash trash-put rmdir")
}

// standIn replaces {} and similar placeholders with the files that a search has found.
// The second result says whether the word has a placeholder. The third result says that
// the placeholder is inside other text, such as a script. Then the effects are unknown,
// because a file name may contain anything.
//
// A directory before the placeholder, and a usual suffix after it, do no harm. Another
// suffix may give a file a name that controls a program: .envr and {}c make .envrc.
func standIn(a, found arg) (w arg, is, part bool) {
	switch {
	case !a.known:
		return a, false, false
	case oneOf(a.text, "{} {/} {//} {.} {/.}"):
		return found, true, false
	}
	text := placeholders.Replace(a.text)
	dir, rest, ok := strings.Cut(text, "{}")
	switch {
	case !ok:
		return a, false, false
	case dir != "" && !strings.HasSuffix(dir, "/"), strings.Contains(rest, ".."), strings.Trim(dir+rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/~") != "":
		return a, true, true
	}
	w = found
	w.text = path.Join(dir, found.text)
	if rest != "" && !oneOf(rest, plainSuffixes) {
		w.text, w.tree, w.joined = w.text+rest, false, true
	}
	return w, true, false
}

// placeholders replaces the other forms of {} in fd and parallel, which stand for parts
// of a name.
var placeholders = strings.NewReplacer("{/}", "{}", "{//}", "{}", "{.}", "{}", "{/.}", "{}")
