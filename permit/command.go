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

// arg is a word of a command, as far as the analysis can determine it.
type arg struct {
	// text is the value of the word if the value is known. Otherwise text is the source
	// text of the word.
	text string
	// known is set if the value is exactly text. It is not set if the word depends on
	// something outside the line, such as an environment variable or the output of a
	// program.
	known bool
	// pattern is set if the shell replaces the word with file names. Then text is the
	// pattern.
	pattern bool
	// pipe is set for a process substitution, such as <(ls). The command inside is judged
	// separately.
	pipe bool
	// tree is set if the word can be any file below a directory, such as a result of
	// find. Then text is the directory.
	tree bool
	// below is set if the word is a file that a search has found by name. Then text is a
	// directory and a name pattern, such as ./*.go, and the file may be at any depth
	// below that directory.
	below bool
	// follows is set if the command may follow links below the directory. Either the
	// command follows links itself, or a search passes the names of links to the command.
	follows bool
	// counts is set if the value is unknown, but certainly a number or the hash of a
	// commit. A word that begins with a dash is an option with such a value.
	counts bool
	// firm is set, together with counts, if the shell passes the word even when its value
	// is empty.
	firm bool
	// joined is set if the name of a found file is only a part of the word, as in {}c.
	// Then the word names another file.
	joined bool
	// single is set if an unknown word is certainly one word, not several words or none.
	single bool
	// taken is not nil for a word that expands to file names. It becomes true when a
	// judge handles the word as a path.
	taken *bool
}

// isText reports whether the value of a word is known and does not expand to file names.
func (a arg) isText() bool { return a.known && !a.pattern && !a.pipe && !a.tree && !a.below }

// use records that a judge has handled the word.
func (a arg) use() {
	if a.taken != nil {
		*a.taken = true
	}
}

// literal returns a word with a known value.
func literal(text string) arg { return arg{text: text, known: true} }

// judge is a function that records what a command does. It calls methods of invoked.
type judge func(c *invoked)

// invoked is a command that is being judged. The command is zone 0 unless its judge calls
// a method that raises the zone.
type invoked struct {
	*analysis

	// name is the name of the command without a directory. args are its arguments.
	name string
	args []arg
	// stdin is the standard input of the command if it is known: a here-document, a
	// here-string, or the output of an echo before a pipe. The zero value means unknown.
	stdin arg
	// piped is set if a pipe or a redirection provides stdin, known or not.
	piped bool

	finding int // index of the command's own finding in analysis.found
}

// usesAll records that file names among the arguments do no harm.
func (c *invoked) usesAll() {
	for _, a := range c.args {
		a.use()
	}
}

// zone raises the zone of the command. A command in ZoneBuild counts as running code that
// Belay has not read.
func (c *invoked) zone(z Zone, why string) {
	f := &c.found[c.finding]
	if z > f.Zone || f.Why == "" && z == f.Zone {
		f.Zone, f.Why = z, why
	}
	f.code = f.code || z == ZoneBuild
}

// installs records that the command downloads code and may run it.
func (c *invoked) installs() {
	c.zone(ZoneNetwork, "fetches from the network")
	c.found[c.finding].code = true
}

// publishes records that the command changes something outside this machine. The command
// may run code of the project first, as package managers do.
func (c *invoked) publishes(why string) {
	c.zone(ZoneExternal, why)
	c.found[c.finding].code = true
}

// protect records that a protection applies to the command. The protection gets a finding
// of its own, so that a rule which allows the command does not cover the protection.
func (c *invoked) protect(id, why string) {
	f := &c.found[c.finding]
	c.add(Finding{Kind: KindCommand, Subject: f.Subject, Zone: f.Zone, Why: why, Protection: id, opaque: f.opaque, code: f.code})
}

// never records that the command is zone 6.
func (c *invoked) never(why string) { c.zone(ZoneNever, why) }

// unknown records that the effects of the command are unknown.
func (c *invoked) unknown(what string) {
	c.zone(ZoneMachine, what)
	c.found[c.finding].opaque = true
}

// read, write and remove record that the command reads, changes or removes a path. An
// unknown path is zone 5. remove includes everything below a directory, so it can be zone
// 6: see Floor.ruinous.
func (c *invoked) read(a arg)   { c.path(a, reads) }
func (c *invoked) remove(a arg) { c.path(a, removes) }

func (c *invoked) write(a arg) {
	if a.tree {
		c.writeTree(a)
		return
	}
	c.path(a, changes)
}

// path is like analysis.path, but stops when there are too many findings, because each
// path needs system calls. After that, it only checks whether a change is zone 6.
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

// writeTree records that the command changes a path and everything below it, as chmod -R
// does.
func (c *invoked) writeTree(a arg) { c.path(a, rewrites) }

// readTree records that the command reads a path and everything below it, as grep -r and
// tar do. It is not for commands that only list names.
func (c *invoked) readTree(a arg) {
	a.tree = true
	c.path(a, reads)
}

func (c *invoked) readTrees(args []arg) {
	for _, a := range args {
		c.readTree(a)
	}
}

// looksAround records that the command reads the current directory because it has no path
// argument.
func (c *invoked) looksAround() { c.read(literal(".")) }

// overwrite records that the command creates or replaces unknown files in a directory. It
// does not remove the directory.
func (c *invoked) overwrite(a arg) {
	a.tree = true
	c.path(a, changes)
}

func (c *invoked) overwriteAll(args []arg) {
	for _, a := range args {
		c.overwrite(a)
	}
}

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

// touchAll is for commands that may do anything with their arguments. An argument that
// leads to a protected path, or out of the project, counts as a change. For an option,
// only the value after = is judged.
func (c *invoked) touchAll(args []arg) {
	for i, a := range args {
		if i > mostFindings {
			c.unknown("it has too many parts to check")
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

// fetch records that the command reads from an address: a URL, or a host with or without
// user, port and path. send records that the command also changes something at that
// address.
func (c *invoked) fetch(a arg) { c.address(a, ZoneNetwork) }
func (c *invoked) send(a arg)  { c.address(a, ZoneExternal) }

// exec records that the command runs another program, as the wrappers env and nice do.
// That program does not see the shell functions of the line, and cannot change the state
// of the shell. If argv is empty, exec does nothing.
func (c *invoked) exec(argv []arg) { c.feed(argv, c.stdin, c.piped) }

// feed is like exec, but the program gets another standard input.
func (c *invoked) feed(argv []arg, stdin arg, piped bool) {
	if len(argv) == 0 {
		return
	}
	c.apart(func() {
		c.funcs = nil
		c.call(argv, stdin, piped)
	})
}

// here judges a command that the shell itself runs without looking for functions, as
// command and builtin do.
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

// script records that the current shell runs a string as a script, as eval does.
func (c *invoked) script(a arg) { c.text(a) }

// child records that another shell runs a string as a script, as sh -c does. The script
// sees only exported variables and functions, and the analysis does not track which are
// exported. So the analysis takes all variables as unknown, and judges the script twice:
// without the functions of the line, and with them.
func (c *invoked) child(a arg) { c.childWith(a, nil, true) }

// childWith is like child, but the script also gets the parameters params ($1 and so on).
// The other shell is sh if plain is set, and bash otherwise.
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

// code records that the command runs a file, or code that it builds from the file.
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

// in calls do as if the command ran in another directory, such as the value of -C.
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

// isDirectory reports whether a word names an existing directory, or has the form of one.
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

// exists reports whether a path exists. It returns true if the path or the current
// directory is unknown.
func (c *invoked) exists(a arg) bool {
	if !a.known || c.dirs == nil {
		return true
	}
	return slices.ContainsFunc(c.spots(a, reads), func(s spot) bool {
		_, err := os.Lstat(filepath.FromSlash(s.path))
		return err == nil
	})
}

// holdsSteering reports whether a path, or something below it, controls Belay or git.
func (c *invoked) holdsSteering(a arg) bool {
	return a.known && !a.pipe && slices.ContainsFunc(c.spots(a, reads), func(s spot) bool { return c.floor.private(&s, rewrites) != "" })
}

// leads records that the command makes a link to a path. The analysis does not see later
// writes through the link. So a link to a protected file counts as a change.
func (c *invoked) leads(a arg) {
	if a.known && !a.pipe {
		for _, s := range c.spots(a, changes) {
			if f := c.floor.judgePath(&s, changes, false); f.Protection == selfFiles || f.Protection == selfGit {
				c.write(a)
				return
			}
			if !s.inside && !s.extra && isHarmlessSystem(s.path) {
				c.add(Finding{Kind: KindRead, Subject: s.path, Zone: ZoneMachine, Why: "the target is outside the project, and the link makes it writable", Protection: shellOutside})
			}
		}
	}
	c.read(a)
}

// known checks that all words are known. If a word is unknown, the effects of the command
// count as unknown. A judge whose result depends on the words calls known first.
func (c *invoked) known(args []arg) {
	for _, a := range args {
		if !a.known && !a.pipe {
			c.unknown("cannot determine the value of " + shown(a.text))
			return
		}
	}
}

// options parses arguments as getopt_long does, and records what the options do. list has
// the options, separated by blanks: "r recursive o= output=" means -r, --recursive, -o
// VALUE, --output VALUE and --output=VALUE. A name of one letter is a short option (-rf,
// -oVALUE). A longer name is a long option, which may be abbreviated. After the = of a
// name may follow:
//
//	?   the value is optional, and must be joined to the option
//	<   the value is a file that the command reads
//	>   the value is a file that the command writes
//	$   the value is a command that the command runs
//	.   no options follow
//
// name! is an option with unknown effects. name% is an option that runs code from the
// line. These characters may begin the list:
//
//	'*'   accept all other options, without values
//	'+'   options end at the first other argument, as in wrappers
//	'-'   -name is a long option, as in Go programs
//
// The command is unknown if a word is unknown or an option is not in the list. The
// command is zone 2 if a pattern could expand to a dangerous option. With *, a joined
// value that leads out of the project counts as a path that the command may change.
func (c *invoked) options(args []arg, list string) *options {
	o := parseOptions(args, list)
	mine := args
	if strings.HasPrefix(list, "+") { // the words after the first one belong to another command
		mine = args[:len(args)-max(len(o.rest)-1, 0)]
	}
	c.knownOrCounts(mine)
	if c.name != "git" && c.name != "make" { // git accepts a number or a hash as a commit, and make a number after -j
		c.known(o.rest[:len(o.rest)-(len(args)-len(mine))])
	}
	if o.strange != "" {
		c.unknown("Belay does not know what " + shown(o.strange) + " does")
	}
	if o.wild != "" && strings.ContainsAny(list, ">$!%") && c.mayBeOption(o.wild) {
		c.zone(ZoneBuild, "the command would take a file name that begins with - as an option: write "+shown("./"+o.wild))
	}
	for i := range o.given {
		g := &o.given[i]
		switch kind := strings.TrimLeft(g.kind, "=?"); {
		case kind == "%":
			c.snippet()
		case kind == "!":
			c.unknown("cannot determine what it does with " + dashed(g.name))
		case g.value == (arg{}): // an optional value is missing
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

// mayBeOption reports whether a pattern could expand to an option: a file name begins
// with a dash, or the line may have created such a file.
func (c *invoked) mayBeOption(pattern string) bool {
	if len(c.dirs) == 0 || c.namesFiles() || c.moved != "" {
		return true
	}
	return slices.ContainsFunc(c.matches(filepath.FromSlash(pattern), removes), func(s spot) bool {
		return s.err != nil || strings.HasPrefix(path.Base(s.path), "-")
	})
}

// emit is like write, but a dash means the standard output.
func (c *invoked) emit(a arg) {
	if a.text != "-" || !a.known {
		c.write(a)
	}
}

func dashed(name string) string {
	if len(name) > 1 {
		return "--" + name
	}
	return "-" + name
}

// isNumber reports whether a text consists of digits, as in `head -20`.
func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

func base(name string) string { return path.Base(name) }
