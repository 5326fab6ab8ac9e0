package permit

import (
	"slices"
	"strings"
)

// batchCommands run a command for many words.
func batchCommands(t table) {
	t.add("xargs gxargs", xargsCommand)
	t.add("parallel", parallelCommand)
}

// pureReaders read whatever they are given, and no option of theirs does more.
const pureReaders = "echo printf cat tac head tail wc ls stat file grep egrep fgrep zgrep basename dirname realpath readlink du nl od cut strings cmp diff md5sum sha1sum sha256sum " +
	"sha512sum cksum zcat rev test true"

// xargsCommand runs a command with words that it reads. Where the line says which, they
// are put behind it. Otherwise only a command that does nothing but read is told by
// what the line says of it: the words come from another command of the line, which is
// judged by itself.
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
	if c.stdin.known && !o.has("a", "arg-file", "0", "null", "d", "delimiter", "E", "e", "eof") && !strings.ContainsAny(c.stdin.text, "'\"\\") {
		c.eachWord(command, mark)
		return
	}
	unknown := arg{text: "(what xargs reads)"}
	if oneOf(base(word(command, 0)), pureReaders) && command[0].known {
		c.known(command)
		found := []arg{command[0]}
		for _, a := range command[1:] {
			switch {
			case mark == "" || !strings.Contains(a.text, mark):
				found = append(found, a)
			case a.text != mark: // a part of a path
				found = append(found, arg{text: strings.ReplaceAll(a.text, mark, "*"), known: true, pattern: true})
			}
		}
		c.feed(found, arg{}, false)
		return
	}
	if mark != "" {
		words := slices.Clone(command)
		for i, a := range words {
			if a.known && a.text == mark {
				words[i] = unknown
			} else if strings.Contains(a.text, mark) { // it is judged as it is written, for what else it says
				c.unknown("what xargs reads becomes part of a command")
			}
		}
		c.feed(words, arg{}, false)
		return
	}
	c.feed(append(slices.Clip(command), unknown), arg{}, false)
}

// eachWord runs the command of xargs with the words of a text.
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

// replaced are words with a mark replaced by another word.
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

// parallelCommand is GNU parallel, which has a shell run what it puts together.
func parallelCommand(c *invoked) {
	if asksOnly(c) {
		return
	}
	c.unknown("it has a shell run what it puts together")
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
	for _, in := range inputs[:min(len(inputs), 4)] { // for ruin: it cannot be told anyway
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
