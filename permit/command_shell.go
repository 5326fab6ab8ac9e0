package permit

import (
	"slices"
	"strings"
)

func shellCommands(t table) {
	t.add("sh bash dash ash rbash posh", shellCommand)
	t.add("zsh ksh mksh yash fish csh tcsh nu xonsh elvish pwsh powershell rc es", foreignShellCommand)
	t.add("eval", func(c *invoked) {
		if len(c.args) > 0 {
			c.script(spaced(c.args))
		}
	})
	t.add(". source", sourceCommand)
	t.add("trap", trapCommand)
	t.add("alias", aliasCommand)
}

// shellCommand judges a shell. Its script is the value of -c, a file, or the standard
// input.
func shellCommand(c *invoked) {
	args := make([]arg, 0, len(c.args))
	for i, a := range c.args { // an argument such as +x switches an option off
		if !a.known || !strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "+") && !strings.HasSuffix(strings.ToLower(word(c.args, max(i-1, 0))), "o") {
			args = append(args, c.args[i:]...)
			break
		}
		switch {
		case !strings.HasPrefix(a.text, "+"):
			args = append(args, a)
		case strings.HasSuffix(strings.ToLower(a.text), "o"):
			args = append(args, literal("-o")) // the next argument is its value
		}
	}
	o := c.options(args, "+c i l r s D a b e f h k m n o= p t u v x B C E H O= P T login norc noprofile posix restricted verbose version help noediting debugger dump-strings dump-po-strings "+
		"rcfile=! init-file=! wordexp pretty-print no-globalrcs no-rcs emulate= q d g w y 1 2 3 4 5 6 7 8 9 I G Y")
	c.shellOptions(len(c.args) - len(o.rest))
	// +n and +o noexec switch -n off.
	checks := o.has("n") && !slices.ContainsFunc(c.args, func(a arg) bool { return strings.HasPrefix(a.text, "+") })
	plain := c.name != "bash" && c.name != "rbash"
	words := o.rest
	if len(words) > 0 && words[0].known && words[0].text == "-" {
		words = words[1:]
	}
	switch {
	case o.has("version", "help", "D", "dump-strings", "dump-po-strings") && !o.has("c"):
	case o.has("c"):
		if len(words) == 0 {
			return
		}
		if checks && words[0].known {
			return
		}
		words[0].use()
		c.childWith(words[0], append([]arg{}, words[min(2, len(words)):]...), plain) // words[1] is $0
	case o.has("s") || len(words) == 0 || isStdin(words[0]):
		switch {
		case checks:
		case c.stdin.known:
			c.childWith(c.stdin, nil, plain)
		case c.piped:
			c.unknown("a shell runs unknown input")
		default:
			c.unknown("starts a shell that runs its input")
		}
	case checks:
		c.read(words[0])
	default:
		c.code(words[0])
		c.touchAll(words[1:])
	}
}

// shellOptions judges the options of a shell, which are like the options of set. words is
// the number of arguments to look at.
func (c *invoked) shellOptions(words int) {
	for i, a := range c.args[:max(words, 0)] {
		switch text := a.text; {
		case !a.known || len(text) < 2 || strings.HasPrefix(text, "--"):
		case text[0] != '-' && text[0] != '+':
		default:
			for _, letter := range text[1:] {
				switch value := word(c.args, i+1); letter {
				case 'c', 'i', 'l', 'r', 's', 'D': // these only say how the shell starts
				case 'o':
					c.shellOption(literal(text[:1] + "o " + value))
				case 'O':
					c.deepGlobs = c.deepGlobs || value == "globstar"
					if !oneOf(value, plainShopts) {
						c.unknown("this option changes how the shell reads the line: " + shown(value))
					}
				default:
					c.shellOption(literal(text[:1] + string(letter)))
				}
			}
		}
	}
}

// isStdin reports whether a path means the standard input.
func isStdin(a arg) bool {
	return a.known && (a.text == "/dev/stdin" || strings.HasPrefix(a.text, "/dev/fd/") || strings.HasPrefix(a.text, "/proc/self/fd/"))
}

// foreignShellCommand judges shells whose syntax differs from sh.
func foreignShellCommand(c *invoked) {
	o := c.options(c.args, "+*c= command= Command= C= init-command=! e= File=< n no-execute")
	for _, text := range o.values("c", "command", "C", "Command") {
		c.unknown("it runs a script in a shell language that Belay does not understand")
		c.child(text)
	}
	switch {
	case o.has("c", "command", "C", "Command"):
	case asksOnly(c):
	case len(o.rest) > 0 && !isStdin(o.rest[0]):
		c.code(o.rest[0])
		c.touchAll(o.rest[1:])
	default:
		c.unknown("a shell runs its arguments or its input")
	}
}

// sourceCommand judges source. The shell itself runs a file, which may set any variable.
func sourceCommand(c *invoked) {
	args := c.args
	if word(args, 0) == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	file := args[0]
	switch {
	case isStdin(file):
		c.script(c.stdin)
	case file.pipe || !file.known:
		c.unknown("a shell runs an unknown script")
		c.script(arg{text: file.text})
	default:
		c.code(file)
		c.touchAll(args[1:])
	}
	c.vars, c.patterns = nil, nil // the file may have set any variable
}

// trapCommand judges trap. The shell runs the script later, when variables may have other
// values.
func trapCommand(c *invoked) {
	args := c.args
	if word(args, 0) == "--" {
		args = args[1:]
	}
	if len(args) < 2 || oneOf(word(args, 0), "- -p -l -P") || args[0].known && (args[0].text == "" || isNumber(args[0].text)) {
		return
	}
	c.apart(func() {
		c.vars, c.patterns, c.params, c.fileParam, c.allDirty = nil, nil, nil, fileParam{}, true
		c.text(args[0])
	})
	c.trapped = true
	if len(args) != 2 || !oneOf(word(args, 1), "EXIT 0") {
		c.lose("a trap from an earlier command may run at any time")
	}
}

// aliasCommand judges alias. The analysis does not track which later commands use the
// alias.
func aliasCommand(c *invoked) {
	for _, a := range c.args {
		name, text, ok := strings.Cut(a.text, "=")
		if !ok && a.known {
			continue
		}
		c.unknown("after this, " + shown(name) + " may run something else")
		c.apart(func() { c.text(arg{text: text, known: a.known}) })
		c.lost = "an earlier command made an alias"
	}
}
