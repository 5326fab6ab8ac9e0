package permit

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arg is a word of a command, as far as the line tells it.
type arg struct {
	// text is the word itself if it is known, and otherwise how it is written.
	text string
	// known says that the word is text and nothing else. A word that depends on what
	// the line does not say (a variable, the output of a command) is not.
	known bool
	// pattern says that the shell puts the names of files in its place: text is what
	// they look like.
	pattern bool
	// pipe says that it stands for a pipe to or from another command of the line,
	// which is judged by itself.
	pipe bool
	// tree says that it stands for anything below the directory that text names, as a
	// search finds it.
	tree bool
	// below says that it stands for files below the directory that text is in, which a
	// search found by their names.
	below bool
	// follows says that links below the directory are followed: by the command itself, or
	// because a search hands over their names.
	follows bool
	// counts says that the word is not known, but is a number, or the hash of a commit. Behind a
	// dash it is an option with such a value.
	counts bool
	// firm says of such a word that it is there even if the value is empty.
	firm bool
	// joined says that names of files are part of the word, with something that makes other names
	// of them.
	joined bool
	// single says of a word that is not known that it stands for exactly one word.
	single bool
	// taken is there for a word that names of files take the place of. It is set once
	// the word was judged as a path.
	taken *bool
}

// isText reports whether a word is known to be its text, and no names of files.
func (a arg) isText() bool { return a.known && !a.pattern && !a.pipe && !a.tree && !a.below }

// use notes that a word was judged.
func (a arg) use() {
	if a.taken != nil {
		*a.taken = true
	}
}

// literal is a word that is known.
func literal(text string) arg { return arg{text: text, known: true} }

// judge says what a command does, by the methods of invoked.
type judge func(c *invoked)

// invoked is a command of a line about to be judged. The functions of the command
// table say with its methods what it does. A command that says nothing is zone 0.
type invoked struct {
	*analysis

	// name is the command's name without a directory, and args are the words behind
	// it.
	name string
	args []arg
	// stdin is what it reads, if the line says that: a here-document, a here-string,
	// or what an echo in front of it writes. Its zero value is not known.
	stdin arg
	// piped says that stdin is connected to something, known or not.
	piped bool

	finding int // of the command itself, in analysis.found
}

// usesAll says that the names of files do no harm as words of the command.
func (c *invoked) usesAll() {
	for _, a := range c.args {
		a.use()
	}
}

// zone raises the zone of the command. One that is in the zone of builds runs code
// that nobody has read, whatever else it does.
func (c *invoked) zone(z Zone, why string) {
	f := &c.found[c.finding]
	if z > f.Zone || f.Why == "" && z == f.Zone {
		f.Zone, f.Why = z, why
	}
	f.code = f.code || z == ZoneBuild
}

// installs says that the command fetches code from the network, and may run it.
func (c *invoked) installs() {
	c.zone(ZoneNetwork, "fetches from the network")
	c.found[c.finding].code = true
}

// publishes says that the command changes something elsewhere, after code of the
// project had its say: package tools run what a project tells them to.
func (c *invoked) publishes(why string) {
	c.zone(ZoneExternal, why)
	c.found[c.finding].code = true
}

// protect says that a protection holds the command. The finding is one of its own,
// so that a rule that allows the command does not lift it.
func (c *invoked) protect(id, why string) {
	f := &c.found[c.finding]
	c.add(Finding{Kind: KindCommand, Subject: f.Subject, Zone: f.Zone, Why: why, Protection: id, opaque: f.opaque, code: f.code})
}

// never says that the command is ruinous.
func (c *invoked) never(why string) { c.zone(ZoneNever, why) }

// unknown says that what the command does is unknown.
func (c *invoked) unknown(what string) {
	c.zone(ZoneMachine, what)
	c.found[c.finding].opaque = true
}

// read, write and remove say that the command reads, changes or removes what a path
// names. Directories count with all that is below them. A path that is not known is
// zone 5. remove differs from write in what is ruinous, and in that the directory
// that holds the project counts.
func (c *invoked) read(a arg)   { c.path(a, reads) }
func (c *invoked) remove(a arg) { c.path(a, removes) }

func (c *invoked) write(a arg) {
	if a.tree {
		c.writeTree(a)
		return
	}
	c.path(a, changes)
}

// path is analysis.path, until enough was found: a command with thousands of paths
// cannot be determined, and each of them costs a look at the file system. Ruin is looked for
// among the rest too.
func (c *invoked) path(w arg, do effect) {
	if len(c.found) <= mostFindings {
		c.analysis.path(w, do)
		return
	}
	if do < rewrites || !w.known || w.pipe {
		return
	}
	places := []string{w.text}
	if w.pattern {
		places = c.fixed(filepath.FromSlash(w.text))
	}
	for _, place := range places {
		for _, s := range c.spots(literal(place), do) {
			if why := c.floor.ruinous(&s, do); why != "" {
				c.never(why)
			}
		}
	}
}

// writeTree says that the command changes what a path names and anything that is below
// it, as chmod -R does, or an archive that is unpacked there.
func (c *invoked) writeTree(a arg) { c.path(a, rewrites) }

// readTree says that the command reads what a path names and anything that is below
// it, as grep -r and tar do. A command that only lists names does not.
func (c *invoked) readTree(a arg) {
	a.tree = true
	c.path(a, reads)
}

func (c *invoked) readTrees(args []arg) {
	for _, a := range args {
		c.readTree(a)
	}
}

// looksAround says that the command reads the directory it is in: it was given no other.
func (c *invoked) looksAround() { c.read(literal(".")) }

// overwrite says that the command puts files in a directory, or over what is there,
// without taking the directory away. Which of them is not known.
func (c *invoked) overwrite(a arg) {
	a.tree = true
	c.path(a, changes)
}

func (c *invoked) overwriteAll(args []arg) {
	for _, a := range args {
		c.overwrite(a)
	}
}

// reads, writes and removes all of some words.
func (c *invoked) readAll(args []arg) {
	for _, a := range args {
		c.read(a)
	}
}

func (c *invoked) writeAll(args []arg) {
	for _, a := range args {
		c.write(a)
	}
}

// touchAll is for commands that may do anything to what they are given: a word that
// leads to a protected place, or out of the project, counts as a change of it. Words
// that begin with - count with what is behind their =.
func (c *invoked) touchAll(args []arg) {
	for i, a := range args {
		if i > mostFindings {
			c.unknown("it does too much to check")
			return
		}
		if a.known && strings.HasPrefix(a.text, "-") {
			_, value, ok := strings.Cut(a.text, "=")
			if !ok {
				continue
			}
			a.text = value
		}
		if a.known && !a.pipe {
			c.mayTouch(a)
		}
	}
}

// fetch says that the command reads from an address: a URL, or a host with or
// without user, port and path. send says that it also changes something there.
func (c *invoked) fetch(a arg) { c.address(a, ZoneNetwork) }
func (c *invoked) send(a arg)  { c.address(a, ZoneExternal) }

// exec says that the command runs another program: the words of a wrapper such as
// env or nice. Without words it runs nothing. Functions of the line do not count for
// it, and what it does to the shell it does to its own.
func (c *invoked) exec(argv []arg) { c.feed(argv, c.stdin, c.piped) }

// feed is exec for a program that does not read what the command reads.
func (c *invoked) feed(argv []arg, stdin arg, piped bool) {
	if len(argv) == 0 {
		return
	}
	c.apart(func() {
		c.funcs = nil
		c.call(argv, stdin, piped)
	})
}

// here says that the command runs another one in the shell itself, passing functions
// over: command and builtin do.
func (c *invoked) here(argv []arg) {
	funcs := c.funcs
	c.funcs = nil
	c.call(argv, c.stdin, c.piped)
	for name, body := range c.funcs {
		if funcs == nil {
			funcs = map[string]*syntax.Stmt{}
		}
		funcs[name] = body
	}
	c.funcs = funcs
}

// script says that the command has the shell itself run a text, as eval does.
func (c *invoked) script(a arg) { c.text(a) }

// child says that the command has another shell run a text. It knows the variables
// and functions of this one only if they were exported, which is not followed: its
// variables are unknown, and functions are taken both ways.
func (c *invoked) child(a arg) { c.childWith(a, nil, true) }

// childWith is child for a text that is given words, $1 and so on, and for a shell that
// is sh or, if plain is not set, bash.
func (c *invoked) childWith(a arg, params []arg, plain bool) {
	before := c.posix
	c.posix = plain
	defer func() { c.posix = before }()
	var given []string
	var file fileParam
	if params != nil && !slices.ContainsFunc(params, func(w arg) bool { return w.known && !w.isText() }) {
		given = plainWords(params)
	} else if n := len(params); n > 0 && (params[n-1].tree || params[n-1].below) && !slices.ContainsFunc(params[:n-1], func(w arg) bool { return !w.isText() }) {
		last := params[n-1]
		last.use()
		if file = (fileParam{number: strconv.Itoa(n), pattern: last.text + "/*"}); last.below {
			file.pattern = last.text
		}
		file.follows = last.follows
	}
	alone := func(funcs map[string]*syntax.Stmt) {
		c.apart(func() {
			c.vars, c.patterns, c.tokens, c.frozen, c.arrays, c.params, c.fileParam, c.funcs = nil, nil, nil, nil, nil, given, file, funcs
			c.text(a)
		})
	}
	alone(nil)
	if len(c.funcs) > 0 && a.known {
		alone(c.funcs)
	}
}

// code says that the command runs a file: a script, or what it builds from it.
func (c *invoked) code(file arg) {
	c.read(file)
	c.zone(ZoneBuild, "runs code of the project")
	if !file.known || file.pipe || file.text == "-" {
		c.unknown("runs unknown code")
		return
	}
	for _, s := range c.spots(file, reads) {
		if !s.inside && !s.extra {
			c.unknown("runs code from outside the project")
		}
	}
}

// in does something as if the command were in another directory, which it goes to by
// an option such as -C.
func (c *invoked) in(dir arg, do func()) {
	before := c.dirs
	c.read(dir)
	c.dirs = nil
	if dir.known && !dir.pipe && !dir.pattern && before != nil {
		c.dirs = before
		var dirs []string
		for _, s := range c.spots(dir, reads) {
			dirs = append(dirs, filepath.FromSlash(s.path))
		}
		c.dirs = dirs
	}
	do()
	c.dirs = before
}

// isDirectory reports whether a word names a directory, now or by the way it is
// written.
func (c *invoked) isDirectory(a arg) bool {
	if !a.known || a.pattern || a.pipe || a.tree {
		return false
	}
	if name := path.Base(a.text); strings.HasSuffix(a.text, "/") || name == "." || name == ".." {
		return true
	}
	return slices.ContainsFunc(c.spots(a, reads), func(s spot) bool {
		info, err := os.Stat(filepath.FromSlash(s.path))
		return err == nil && info.IsDir()
	})
}

// exists reports whether a path is there, or cannot be determined.
func (c *invoked) exists(a arg) bool {
	if !a.known || c.dirs == nil {
		return true
	}
	return slices.ContainsFunc(c.spots(a, reads), func(s spot) bool {
		_, err := os.Lstat(filepath.FromSlash(s.path))
		return err == nil
	})
}

// holdsSteering reports whether something below a path steers Belay or git.
func (c *invoked) holdsSteering(a arg) bool {
	return a.known && !a.pipe && slices.ContainsFunc(c.spots(a, reads), func(s spot) bool { return c.floor.private(&s, rewrites) != "" })
}

// leads says that the command makes a link to a path. What is written through the link
// later is not seen, so that a link to what must not be changed counts as a change.
func (c *invoked) leads(a arg) {
	if a.known && !a.pipe {
		for _, s := range c.spots(a, changes) {
			if f := c.floor.judgePath(&s, changes, false); f.Protection == selfFiles || f.Protection == selfGit {
				c.write(a)
				return
			}
			if !s.inside && !s.extra && isHarmlessSystem(s.path) {
				c.add(Finding{Kind: KindRead, Subject: s.path, Zone: ZoneMachine, Why: "it is outside the project, and the link makes it writable", Protection: shellOutside})
			}
		}
	}
	c.read(a)
}

// known says so if one of the words is not known. Commands whose effect depends on
// their words ask for it first.
func (c *invoked) known(args []arg) {
	for _, a := range args {
		if !a.known && !a.pipe {
			c.unknown("cannot determine what " + shown(a.text) + " stands for")
			return
		}
	}
}

// options takes words apart as getopt_long does, and says what follows from them
// alone. list has the options, separated by blanks: "r recursive o= output=" has -r,
// --recursive, -o VALUE, --output VALUE and --output=VALUE. One letter is short (and
// can be joined: -rf, -oVALUE), more are long, and may be shortened. Behind a name,
// = is followed by
//
//	?   the value is there only if it is joined on
//	<   the value is a file that is read
//	>   the value is a file that is written
//	$   the value is a command that is run
//	.   no options follow
//
// and name! is an option with which the effect of the command is unknown; with name% it
// runs code that is on the line. In front
// of the list, * knows all other options and takes them without a value, + has the
// first word that is no option end them, as with wrappers, and - takes -name for a long
// option, as Go programs do.
//
// A word that is not known, an option that is not in the list, and a pattern whose
// files could be taken for an option that is dangerous are said. If the list knows all other
// options, a value that is joined to one of them and leads out of the project is judged as a
// path that the command may change.
func (c *invoked) options(args []arg, list string) *options {
	o := parseOptions(args, list)
	mine := args
	if strings.HasPrefix(list, "+") { // what follows is another's, but for the word that ends them
		mine = args[:len(args)-max(len(o.rest)-1, 0)]
	}
	c.knownOrCounts(mine)
	if c.name != "git" && c.name != "make" { // git takes a number, or a hash, for a commit
		c.known(o.rest[:len(o.rest)-(len(args)-len(mine))])
	}
	if o.strange != "" {
		c.unknown("it is not known what " + shown(o.strange) + " does")
	}
	if o.wild != "" && strings.ContainsAny(list, ">$!%") && c.mayBeOption(o.wild) {
		c.zone(ZoneBuild, "a file name that begins with - would be taken for an option: write "+shown("./"+o.wild))
	}
	for i := range o.given {
		g := &o.given[i]
		switch kind := strings.TrimLeft(g.kind, "=?"); {
		case kind == "%":
			c.snippet()
		case kind == "!":
			c.unknown("cannot determine what it does with " + dashed(g.name))
		case g.value == (arg{}): // optional, and not there
		case g.kind == "":
			c.mayTouch(c.leadsOut(g.name, g.value))
		case kind == "<":
			c.read(g.value)
		case kind == ">":
			c.emit(g.value)
		case kind == "$":
			c.unknown(dashed(g.name) + " runs a program")
			c.child(g.value)
		}
	}
	return o
}

// mayBeOption reports whether a file that a pattern stands for could be taken for an
// option: one has a name that begins with a dash, or the line may have made one.
func (c *invoked) mayBeOption(pattern string) bool {
	if len(c.dirs) == 0 || c.namesFiles() || c.moved != "" {
		return true
	}
	return slices.ContainsFunc(c.matches(filepath.FromSlash(pattern), removes), func(s spot) bool {
		return s.err != nil || strings.HasPrefix(path.Base(s.path), "-")
	})
}

// emit is write for a word that stands for the standard output if it is a dash.
func (c *invoked) emit(a arg) {
	if a.text != "-" || !a.known {
		c.write(a)
	}
}

// dashed is an option as it is typed.
func dashed(name string) string {
	if len(name) > 1 {
		return "--" + name
	}
	return "-" + name
}

// isNumber reports whether a word is digits, as in `head -20`.
func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// base is the last part of a command's name, as it is looked up.
func base(name string) string { return path.Base(name) }
