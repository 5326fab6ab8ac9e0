package permit

import (
	"path"
	"strings"
	"sync"
)

// table maps the names of commands to their judges.
type table map[string]judge

// add gives several commands the same judge. Blanks separate the names.
func (t table) add(names string, j judge) {
	for name := range strings.FieldsSeq(names) {
		t[name] = j
	}
}

// commands are the commands that the floor knows.
type commands struct {
	// judges has the judge of each command. A command without a judge is an unknown
	// program.
	judges table
	// answersAlone are programs that print their version or help without loading anything
	// from the project.
	answersAlone map[string]bool
}

// knownCommands makes the table once, for all floors. If a line of commands.txt has a
// mistake, its commands stay unknown programs. A test fails if there is such a line.
var knownCommands = sync.OnceValue(func() *commands {
	all, _ := parseFlat(flatText)
	for _, topic := range commandTopics() {
		topic(all.judges)
	}
	return all
})

// commandTopics returns functions that fill the table, each with the commands of one
// file.
func commandTopics() []func(table) {
	return []func(table){
		plainCommands, shellCommands, builtinCommands, wrapperCommands, batchCommands,
		textCommands, knownOptionCommands, queryCommands, searchCommands, findCommands, sedCommands, awkCommands,
		fileCommands, copyCommands, archiveCommands, tarCommands, patchCommands,
		gitCommands, compileCommands, goCommands, makeCommands, rustCommands, nodeCommands, pythonCommands, packageCommands, javaCommands,
		interpreterCommands, editorCommands, curlCommands, wgetCommands, networkCommands, remoteCommands, hostingCommands,
		cloudCommands, clusterCommands, containerCommands, databaseCommands,
		machineCommands, processCommands, systemCommands, ruinCommands, cryptoCommands, belayCommands,
	}
}

// mostOfMany limits how many parts of a command are judged if each part is expensive. A
// command with more parts is unknown.
const mostOfMany = 64

// few returns the first mostOfMany words. If there are more, the command is unknown.
func (c *invoked) few(words []arg) []arg {
	if len(words) > mostOfMany {
		c.unknown("it has too many parts to check")
		return words[:mostOfMany]
	}
	return words
}

// harmless judges commands that are harmless with any arguments.
func harmless(c *invoked) { c.usesAll() }

// at judges commands that have the same zone with any arguments.
func at(z Zone, why string) judge {
	return func(c *invoked) {
		c.known(c.args)
		c.zone(z, why)
	}
}

// opaque judges commands that run their arguments or their input in a way that the
// analysis does not follow.
func opaque(why string) judge {
	return func(c *invoked) { c.unknown(why) }
}

// reader judges commands that read the files in their arguments. See invoked.options for
// list.
func reader(list string) judge {
	return func(c *invoked) { c.readAll(c.options(c.args, list).rest) }
}

// dirReader judges commands that list the current directory if they have no arguments.
// follow has the options with which they follow links.
func dirReader(list, follow string) judge {
	follows := strings.Fields(follow)
	return func(c *invoked) {
		o := c.options(c.args, list)
		if len(o.rest) == 0 && !asksOnly(c) {
			o.rest = []arg{literal(".")}
		}
		for _, a := range o.rest {
			a.follows = a.follows || o.may(follows...)
			c.read(a)
		}
	}
}

// differ judges commands that compare files, and with -r whole directories. They follow
// links unless --no-dereference is set.
func differ(list string) judge {
	return func(c *invoked) {
		if o := c.options(c.args, list); o.may("r", "recursive") {
			c.readFollowing(o.rest, !o.has("no-dereference"))
		} else {
			c.readAll(o.rest)
		}
	}
}

// writer judges commands that change the files in their arguments.
func writer(list string) judge {
	return func(c *invoked) {
		c.writeAll(c.options(c.args, list).rest)
		c.zone(ZoneWorkspace, "")
	}
}

// asksOnly reports whether a command only prints its version or its help, without loading
// anything from the project. Some programs load something first: rustc reads
// rust-toolchain.toml to choose a compiler, yarn runs the file that .yarnrc.yml names,
// and mvn starts java with .mvn/jvm.config.
func asksOnly(c *invoked) bool { return c.floor.commands.answersAlone[c.name] && isQuestion(c) }

// isQuestion reports whether the only argument asks for the version or the help.
func isQuestion(c *invoked) bool {
	if len(c.args) != 1 || !c.args[0].known {
		return false
	}
	switch c.args[0].text {
	case "--version", "--help", "-version", "-help", "-V", "version", "help":
		return true
	default:
		return false
	}
}

// under returns the path of name below dir.
func under(dir, name arg) arg {
	return arg{text: path.Join(dir.text, name.text), known: dir.known && name.known, pattern: dir.pattern || name.pattern}
}

// oneOf reports whether a word is in a list. Blanks separate the words of the list.
func oneOf(word, list string) bool {
	if word == "" || strings.IndexByte(word, ' ') >= 0 {
		return false
	}
	for {
		at := strings.Index(list, word)
		if at < 0 {
			return false
		}
		end := at + len(word)
		if (at == 0 || list[at-1] == ' ') && (end == len(list) || list[end] == ' ') {
			return true
		}
		list = list[end:]
		if next := strings.IndexByte(list, ' '); next >= 0 { // skip the rest of this name
			list = list[next:]
		} else {
			return false
		}
	}
}

// word returns word n, or an empty text if that word does not exist or is unknown.
func word(args []arg, n int) string {
	if n >= len(args) || !args[n].known {
		return ""
	}
	return args[n].text
}

// spaced joins words with blanks, as eval and ssh do. The result is unknown if a word is
// a pattern, because the shell replaces a pattern with file names.
func spaced(args []arg) arg {
	texts := make([]string, len(args))
	known := true
	for i, a := range args {
		texts[i] = a.text
		known = known && a.known && !a.pipe && !a.pattern && !a.tree
	}
	return arg{text: strings.Join(texts, " "), known: known}
}
