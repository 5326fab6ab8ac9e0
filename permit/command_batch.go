package permit

import (
	"slices"
	"strings"
)

// batchCommands run a command once for each input.
func batchCommands(t table) {
	t.add("xargs gxargs", xargsCommand)
	t.add("parallel", parallelCommand)
}

// xargsCommand judges xargs. If the input is known, its words become arguments of the
// command. If the input is file names that a search in the project has found, the command
// runs on files of the project. Otherwise the added words are unknown.
func xargsCommand(c *invoked) {
	o := c.options(c.args, "+0 null a=< arg-file=< d= delimiter= E= e=? eof=? I= i=? replace=? J= L= l=? max-lines=? n= max-args= P= max-procs= process-slot-var= p interactive o open-tty "+
		"r no-run-if-empty R= s= S= max-chars= show-limits t verbose x exit help version")
	command := o.rest
	if len(command) == 0 {
		command = []arg{literal("echo")}
	}
	mark := ""
	if m, ok := o.value("I", "i", "replace", "J"); ok {
		if mark = m.text; mark == "" {
			mark = "{}"
		}
	}
	if v, ok := o.value("process-slot-var"); ok {
		c.setting(v.text, arg{})
	}
	switch {
	case c.stdin.isText() && !o.has("a", "arg-file", "0", "null", "d", "delimiter", "E", "e", "eof") && !strings.ContainsAny(c.stdin.text, "'\"\\"):
		c.eachWord(command, mark)
	case c.names.found && c.piped && !o.has("a", "arg-file", "E", "e", "eof") && c.onNames(o, command, mark):
	case mark != "":
		words := slices.Clone(command)
		for i, a := range words {
			if a.known && a.text == mark {
				words[i] = whatXargsReads
			} else if strings.Contains(a.text, mark) { // the known words of the command are judged below
				c.unknown("xargs inserts unknown input into a command")
			}
		}
		c.feed(words, arg{}, false)
	default:
		c.feed(append(slices.Clip(command), whatXargsReads), arg{}, false)
	}
}

// whatXargsReads stands for the unknown input of xargs.
var whatXargsReads = arg{text: "(input of xargs)"}

// onNames judges the command of xargs with files that a search in the project has found.
// It returns false if the command could run on other files: xargs splits a name at a
// blank or a quote unless names end with zero bytes.
func (c *invoked) onNames(o *options, command []arg, mark string) bool {
	zeros := o.has("0", "null")
	if d, ok := o.value("d", "delimiter"); ok && (!d.known || d.text != `\n` && d.text != "\n") || zeros != c.names.zeros {
		return false
	}
	steers := true
	if !zeros || !c.names.plain {
		odd, found := c.surprises(c.names.starts)
		if odd {
			c.unknown("xargs may misread the names of files: end names with zero bytes (find -print0, git ls-files -z) and use xargs -0")
			return false
		}
		steers = found
	}
	run := command
	if mark != "" {
		run = replaced(command, mark, literal("{}"))
	}
	c.runOnEach(run, []arg{c.searched()}, !c.names.hidden && !steers, c.names.files)
	return true
}

// searched returns the directory that contains all files whose names come from a pipe:
// the directory of the search, or the current directory.
func (c *invoked) searched() arg {
	if c.stdin.tree {
		return literal(c.stdin.text)
	}
	return literal(".")
}

// readsNames reports whether the command's input is file names that a search in the
// project has found. zeros says whether the command expects zero bytes instead of
// newlines after the names.
func (c *invoked) readsNames(zeros bool) bool {
	if !c.names.found || zeros != c.names.zeros {
		return false
	}
	if zeros {
		return true
	}
	odd, _ := c.surprises(nil)
	return !odd
}

// readLines records that the command reads the files whose names are on its standard
// input, one name per line.
func (c *invoked) readLines() {
	switch {
	case c.stdin.isText():
		for line := range strings.Lines(c.stdin.text) {
			c.read(literal(strings.TrimRight(line, "\r\n")))
		}
	case c.piped && c.readsNames(false):
		c.readFollowing([]arg{c.searched()}, !c.names.files)
	default:
		c.unknown("cannot determine which files it reads")
	}
}

// eachWord judges the command of xargs with the words of a known standard input.
func (c *invoked) eachWord(command []arg, mark string) {
	if mark != "" {
		var lines []arg
		for line := range strings.Lines(c.stdin.text) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, literal(line))
			}
		}
		for _, line := range c.few(lines) {
			c.feed(replaced(command, mark, line), arg{}, false)
		}
		return
	}
	words := slices.Clip(command)
	for w := range strings.FieldsSeq(c.stdin.text) {
		words = append(words, literal(w))
	}
	c.feed(words, arg{}, false)
}

// replaced returns the words with each mark, such as {}, replaced by another word.
func replaced(words []arg, mark string, by arg) []arg {
	all := make([]arg, len(words))
	for i, a := range words {
		all[i] = a
		if a.known && strings.Contains(a.text, mark) {
			all[i] = arg{text: strings.ReplaceAll(a.text, mark, by.text), known: by.known}
		}
	}
	return all
}

// parallelCommand judges GNU parallel, which builds commands and runs them in a shell.
func parallelCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	c.unknown("it builds a command from its input and runs it in a shell")
	o := parseOptions(c.args, "+*j= jobs= a= arg-file= C= colsep= N= n= I= d= delimiter= S= sshlogin= timeout= results= joblog= retries= halt= memfree= load= wd= tmpdir=")
	var command, inputs []arg
	for i, a := range o.rest {
		if a.known && strings.HasPrefix(a.text, ":::") {
			inputs = o.rest[i+1:]
			break
		}
		command = append(command, a)
	}
	if len(command) == 0 {
		for _, text := range c.few(inputs) {
			c.child(text)
		}
		return
	}
	marked := strings.Contains(spaced(command).text, "{}")
	for _, in := range inputs[:min(len(inputs), 4)] { // only to find commands in zone 6: the result is unknown anyway
		filled := replaced(command, "{}", in)
		if !marked {
			filled = append(filled, in)
		}
		c.child(spaced(filled))
	}
	if len(inputs) == 0 {
		c.child(spaced(command))
	}
}
