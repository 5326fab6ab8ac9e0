package permit

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// plainCommands change nothing and read no files, except with a few options.
func plainCommands(t table) {
	t.add("ps", processesCommand)
	t.add("ss", func(c *invoked) {
		if o := c.options(c.args, "* K! kill! D=> diag=> F=< filter=< f= A= N="); o.has("K", "kill") {
			c.zone(ZoneMachine, "closes connections of other programs")
		}
	})
	t.add("nvidia-smi", func(c *invoked) {
		c.known(c.args)
		for _, a := range c.args {
			if !strings.HasPrefix(a.text, "--query") && !strings.HasPrefix(a.text, "--format") && !oneOf(a.text, "-q -L topo pmon dmon") {
				c.zone(ZoneMachine, "may change the devices of the machine")
			}
		}
	})
	t.add("[ test", testCommand)
	t.add("printf", printfCommand)
	t.add("date gdate", dateCommand)
}

// textCommands process text: most read files, and split and csplit write files.
func textCommands(t table) {
	t.add("less", pagerCommand)
	t.add("whatis apropos", func(c *invoked) {
		c.options(c.args, "* C=! config-file=! M= L= s= m= sections= manpath= locale= systems=")
		c.usesAll()
	})
	t.add("dc", deskCommand)
	t.add("look", func(c *invoked) { c.readAll(c.options(c.args, "* t=").from(1)) })
	t.add("shuf gshuf", shuffleCommand)
	t.add("split gsplit", splitCommand)
	t.add("csplit", contextSplitCommand)
}

// testCommand judges test and [. After -v, bash evaluates an array index in the name of
// the variable, which can run commands. An unknown word may be -v.
func testCommand(c *invoked) {
	c.usesAll()
	for i, a := range c.args {
		if !a.known && !a.single {
			c.zone(ZoneBuild, "the word "+shown(a.text)+" may become several words, and a -v among them can run code: put the word in double quotes")
		}
		if i > 0 && !c.args[i-1].isText() && (!a.known && !c.args[i-1].pattern || strings.Contains(a.text, "[") && strings.ContainsAny(a.text, "$`")) {
			c.unknown("the word " + shown(c.args[i-1].text) + " may be -v, which can run commands in the index of a variable: write the operator literally")
		}
		if i > 0 && word(c.args, i-1) == "-v" && (!a.known || !c.isVariable(a.text) && strings.ContainsAny(a.text, "[$`")) {
			c.unknown("the shell evaluates the index of a variable, which may run commands")
		}
	}
}

// writesCount matches %n in a printf format. %n sets a variable.
var writesCount = lazyregexp.New(`(^|[^%])(%%)*%[-+ #0-9.*]*n`)

func printfCommand(c *invoked) {
	c.usesAll()
	switch first := word(c.args, 0); {
	case first == "-v":
		c.sets(c.args[1:min(2, len(c.args))])
	case strings.HasPrefix(first, "-v"):
		c.sets([]arg{literal(first[2:])})
	case len(c.args) > 0 && !c.args[0].known:
		c.sets([]arg{{}}) // the word may be -v
		return
	}
	if strings.Contains(spaced(c.args).text, "%") && writesCount.MatchString(spaced(c.args).text) {
		c.unknown("%n sets a variable")
		c.lose("an earlier command set an unknown variable")
	}
}

// fills records that the command turns variables into arrays.
func (c *invoked) fills(names []arg) {
	for _, n := range names {
		c.arrays = c.arrays.with(n.text, true)
	}
}

// sets records that the command sets variables. The shell evaluates an array index in a
// name, which can run commands.
func (c *invoked) sets(names []arg) {
	for _, n := range names {
		if _, index, ok := strings.Cut(n.text, "["); !n.known || n.pattern || strings.ContainsAny(n.text, "$`") || ok && !c.expression(strings.TrimSuffix(index, "]")) {
			c.unknown("cannot determine which variable it sets")
		}
		name, _, _ := strings.Cut(n.text, "[")
		if h := hazardOf(name, arg{}); h.zone > ZoneSafe && n.known {
			c.unknown(h.why)
			c.lost = "an earlier command changed " + name
		}
	}
	c.forget(names...)
}

func dateCommand(c *invoked) {
	o := c.options(c.args, "* d= date= f=< file=< r=< reference=< s= set= v= j z= I=? iso-8601=? rfc-3339=")
	if o.has("s", "set") {
		c.zone(ZoneMachine, "sets the clock")
	}
	for _, a := range o.rest {
		if !strings.HasPrefix(a.text, "+") && !o.has("j") {
			c.zone(ZoneMachine, "sets the clock")
		}
	}
}

// objectReader judges the tools of GNU binutils that read files.
func objectReader(list string) judge {
	return func(c *invoked) {
		c.optionFiles()
		c.readAll(c.options(c.args, list).rest)
	}
}

// optionFiles records that @FILE makes the command read more arguments from a file. These
// arguments may make the command load a library.
func (c *invoked) optionFiles() {
	for _, a := range c.args {
		file, ok := strings.CutPrefix(a.text, "@")
		if a.pattern && a.text != "" && strings.IndexByte("*?[", a.text[0]) >= 0 {
			ok = slices.ContainsFunc(c.matches(filepath.FromSlash(a.text), removes), func(s spot) bool { return strings.HasPrefix(path.Base(s.path), "@") })
			file = a.text
		}
		if ok {
			c.read(arg{text: file, known: a.known, pattern: a.pattern})
			c.unknown("it reads options from the file " + shown(file))
		}
	}
}

// pagerCommand judges less. Without a terminal it only copies its input. But its initial
// commands (+) may run programs.
func pagerCommand(c *invoked) {
	o := c.options(c.args, "* o=> O=> log-file=> LOG-FILE=> k=! lesskey-file=! lesskey-src=! lesskey-content=! cmd=! T=< p= P= x= y= z= b= h= j= D= t= tag=")
	for _, a := range c.args {
		if strings.HasPrefix(strings.ToLower(a.text), "--less") { // less ignores the case of this option
			c.unknown("its key bindings can run commands")
		}
		if !slices.Contains(o.rest, a) && (strings.Contains(a.text, "$") || strings.Contains(a.text, " -") || strings.Contains(a.text, "\t-")) {
			c.unknown(shown(a.text) + " may contain a second option: write each option as a separate word")
		}
	}
	for _, a := range o.rest {
		if to, ok := strings.CutPrefix(a.text, "+"); ok {
			if to != "F" && to != "G" && to != "g" && !isNumber(to) && (!strings.HasPrefix(to, "/") || strings.ContainsAny(to, "\n\r!|")) {
				c.unknown("Belay does not know what " + shown(a.text) + " does")
			}
			continue
		}
		c.read(a)
	}
}

// deskCommand judges dc. In its programs, ! runs a command and ? runs a line of the
// input.
func deskCommand(c *invoked) {
	o := c.options(c.args, "e= expression= f=! file=! h help V version")
	programs := o.values("e", "expression")
	if len(o.rest) > 0 {
		c.unknown("runs an unknown program")
	}
	if len(programs) == 0 {
		programs = []arg{c.stdin}
	}
	for _, p := range programs {
		if !p.known || strings.Contains(p.text, "!") || strings.Contains(p.text, "?") && c.piped {
			c.unknown("dc can run commands")
		}
	}
}

// inOutCommand judges commands that read their first argument and write to the others.
func inOutCommand(list string) judge {
	return func(c *invoked) {
		o := c.options(c.args, list)
		for i, a := range o.rest {
			if i == 0 {
				c.read(a)
			} else {
				c.emit(a)
			}
		}
	}
}

func shuffleCommand(c *invoked) {
	o := c.options(c.args, "* e echo i= n= o=> output=> input-range= head-count= random-source=<")
	if !o.has("e", "echo") {
		c.readAll(o.rest)
	}
}

func splitCommand(c *invoked) {
	o := c.options(c.args, "* b= l= n= a= C= t= filter=$ additional-suffix= number= lines= bytes= line-bytes= suffix-length= separator= "+
		"numeric-suffixes=? hex-suffixes=? p=")
	c.zone(ZoneWorkspace, "")
	for i, a := range o.rest {
		if i == 0 {
			c.read(a)
		} else {
			c.write(a)
			c.beginsNames(a)
		}
	}
	if suffix, ok := o.value("additional-suffix"); ok && (!suffix.known || oneOf(path.Ext(suffix.text), ".yaml .yml .json")) {
		c.unknown("cannot determine which files it writes")
	}
}

// beginsNames records that the command writes files whose names begin with a prefix. If a
// part of the prefix begins with a dot, one of the files may control another program.
func (c *invoked) beginsNames(prefix arg) {
	for part := range strings.SplitSeq(prefix.text, "/") {
		if strings.HasPrefix(part, ".") && part != "." && part != ".." || !prefix.known {
			c.unknown("cannot determine which files it writes")
			return
		}
	}
}

func contextSplitCommand(c *invoked) {
	o := c.options(c.args, "* f=> prefix=> b= n= suffix-format= digits=")
	c.zone(ZoneWorkspace, "")
	for _, prefix := range o.values("f", "prefix") {
		c.beginsNames(prefix)
	}
	for _, format := range o.values("b", "suffix-format") {
		if !strings.Contains(format.text, "%") || strings.Contains(format.text, "/") {
			c.unknown("cannot determine which files it writes")
		}
	}
	if len(o.rest) > 0 {
		c.read(o.rest[0])
	}
}
