package permit

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// simple analyses a simple command: assignments, words, or both.
func (a *analysis) simple(c *syntax.CallExpr, stdin arg, piped bool) {
	argv := a.words(c.Args)
	if len(argv) == 0 {
		for _, as := range c.Assigns {
			a.assign(as)
		}
		return
	}
	if len(c.Assigns) == 0 {
		a.call(argv, stdin, piped)
		return
	}
	had, lost, exported := a.vars, a.lost, a.exported
	for _, as := range c.Assigns {
		if as.Name.Value == "IFS" && argv[0].text == "read" && !a.isFunction("read") {
			continue // IFS=… before read applies only to read
		}
		a.assign(as)
		a.exports(as.Name.Value)
	}
	a.call(argv, stdin, piped)
	for _, as := range c.Assigns { // it depends on the command whether the assignment lasts
		value, ok := had.get(as.Name.Value)
		if now, still := a.vars.get(as.Name.Value); !ok || !still || now != value {
			a.unknown(as.Name.Value)
		}
	}
	if !slices.Contains(lasting, argv[0].text) {
		if lost == "" {
			a.lost = ""
		}
		a.exported = exported
	}
}

// lasting are commands that keep the assignments before them: after x=1 export y, x is
// still set.
var lasting = []string{"export", "readonly", "eval", "source", ".", "exec", "declare", "typeset", "local", "set", "unset", "trap", ":"}

// call judges a command by its words.
func (a *analysis) call(argv []arg, stdin arg, piped bool) {
	if len(argv) == 0 {
		return
	}
	name := argv[0]
	if !name.isText() {
		a.doubt(joined(argv), "cannot determine which command this is")
		a.lose("an earlier command is unknown")
		return
	}
	switch name.text {
	case "shift", "set":
		a.params, a.fileParam = nil, fileParam{}
	case "break", "continue", "return":
		a.leave()
	}
	if body, ok := a.funcs[name.text]; ok {
		if !a.maybe.has(name.text) {
			a.enter(name.text, argv[1:], body, stdin, piped)
			return
		}
		before := a.state
		a.enter(name.text, argv[1:], body, stdin, piped)
		after := a.state
		a.state = before
		defer func() { a.join(&after) }()
	}
	f := Finding{Kind: KindCommand, Subject: joined(argv), words: plainWords(argv), trust: true, fed: piped || a.fed, apart: a.exported != "" || len(a.dirs) != 1 || a.dirs[0] != a.floor.project.path}
	c := &invoked{analysis: a, name: name.text, args: argv[1:], stdin: stdin, piped: piped}
	judged := a.floor.commands.judges[name.text]
	if strings.ContainsAny(name.text, `/\`) {
		c.name = base(name.text)
		judged, f.trust = a.program(c, name, &f)
	}
	c.finding = len(a.found)
	a.add(f)
	if c.finding >= len(a.found) {
		return // there are too many findings already
	}
	switch {
	case a.lost != "" && !builtins[name.text]:
		c.unknown(a.lost)
	case judged == nil && f.Zone == 0:
		c.unknown("an unknown program")
	case a.exported != "" && !builtins[name.text] && !shellsOwn[name.text]:
		c.zone(ZoneBuild, "its environment has "+a.exported+", which may make it run other code")
	}
	owner, tracked := a.owner, a.tracked
	a.owner, a.tracked = c.finding+1, false
	a.deeper(f.Subject, func() {
		if judged != nil {
			judged(c)
			if c.found[c.finding].code {
				c.mayReach()
			}
			c.unjudgedPatterns()
		} else {
			c.touchAll(c.args)
		}
	})
	a.owner, a.tracked = owner, tracked
}

// unjudgedPatterns marks the command as unknown if an argument expands to file names and
// no judge has treated it as a path. A file name could be a script, an option or a
// command. Commands that run code of the project anyway are exempt.
func (c *invoked) unjudgedPatterns() {
	defer c.usesAll() // a wrapper around this command must not judge the words again
	if c.finding >= len(c.found) || c.found[c.finding].Zone >= ZoneBuild {
		return
	}
	for _, a := range c.args {
		if a.taken != nil && !*a.taken && (!strings.HasPrefix(a.text, "-") || c.mayBeOption(a.text)) {
			c.unknown(shown(a.text) + " expands to file names, and Belay does not know how the command uses them")
			return
		}
	}
}

// programDirectories are the directories of system programs.
var programDirectories = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin", "/usr/local/go/bin"}

// program judges a command that is given by its path. It returns the command's judge, or
// nil if there is none. The second result reports whether the program is in a system
// directory.
func (a *analysis) program(c *invoked, name arg, f *Finding) (judge, bool) {
	if slices.Contains(programDirectories, filepath.ToSlash(filepath.Dir(name.text))) {
		if file, err := follow(name.text); err == nil && a.floor.commands.judges[c.name] != nil &&
			(filepath.Base(file) == c.name || slices.Contains(programDirectories, filepath.ToSlash(filepath.Dir(file))) || isSystem(filepath.ToSlash(file))) {
			return a.floor.commands.judges[c.name], true
		}
		return nil, true
	}
	worst := Finding{Zone: ZoneBuild, Why: "runs a program of the project"}
	for _, s := range a.spots(name, reads) {
		switch {
		case s.inside && s.err == nil:
		case s.temp && s.err == nil:
			worst.Zone, worst.Why = max(worst.Zone, ZoneMachine), "runs a temporary program"
		default:
			worst.Zone, worst.Why, worst.Protection = ZoneMachine, "runs a program outside the project", shellOutside
		}
	}
	if a.dirs == nil && !filepath.IsAbs(name.text) {
		worst.Zone, worst.Why = ZoneMachine, "cannot determine which program this is"
	}
	f.Zone, f.Why, f.Protection, f.code = worst.Zone, worst.Why, worst.Protection, true
	if c.name == "belay" { // this may be the Belay that runs the agent
		return a.floor.commands.judges[c.name], false
	}
	return nil, false
}

// builtins are commands that the shell runs itself, so PATH does not matter.
var builtins = map[string]bool{
	":": true, "true": true, "false": true, "echo": true, "printf": true, "test": true, "[": true, "cd": true, "pwd": true, "exit": true, "return": true,
	"export": true, "set": true, "unset": true, "shift": true, "break": true, "continue": true, "read": true, "wait": true, "umask": true, "ulimit": true, "type": true,
}

// shellsOwn are more builtins. Environment variables do not change what they do.
var shellsOwn = wordSet("local declare typeset readonly let eval . source trap getopts mapfile readarray jobs pushd popd dirs command builtin exec hash alias unalias shopt times caller")

// joined returns a command as text to show.
func joined(argv []arg) string {
	size := len(argv)
	for _, w := range argv {
		size += len(w.text) + 2
	}
	var b strings.Builder
	b.Grow(min(size, 1024))
	for i, w := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		text := w.text
		if w.known && (text == "" || strings.ContainsAny(text, " \t\n'\"\\$`;|&<>()")) {
			if quoted, err := syntax.Quote(text, syntax.LangBash); err == nil {
				text = quoted
			}
		}
		b.WriteString(text)
		if b.Len() > 1000 {
			b.WriteString(" …")
			break
		}
	}
	return b.String()
}

// plainWords returns the words of a command for rules, or nil if a word is unknown.
func plainWords(argv []arg) []string {
	words := make([]string, len(argv))
	for i, w := range argv {
		if !w.known {
			return nil
		}
		words[i] = w.text
	}
	return words
}
