package permit

import (
	"path"
	"slices"
	"strings"
)

// startsOutward reports whether a text has the form of a path that leads out of the
// project.
func startsOutward(text string) bool {
	return strings.HasPrefix(text, "/") || text == ".." || strings.HasPrefix(text, "../") || strings.HasPrefix(text, "~/") || text == "~"
}

// notPaths are endings of option names. The values of these options are patterns, not
// paths.
var notPaths = []string{"pattern", "patterns", "match", "filter", "grep", "glob", "regex", "regexp", "exclude", "ignore"}

// leadsOut returns the path in the value of an unknown option, if the path may lead out
// of the project. Otherwise it returns an empty word. The path may follow another word,
// as in html:/tmp/x.
func (c *invoked) leadsOut(option string, value arg) arg {
	text := strings.TrimPrefix(value.text, "file://")
	if !value.known || strings.Contains(text, "://") || slices.ContainsFunc(notPaths, func(end string) bool { return strings.HasSuffix(strings.ToLower(option), end) }) {
		return arg{}
	}
	for i := 1; i < len(text) && !startsOutward(text); i++ {
		if strings.IndexByte(":,=", text[i-1]) >= 0 && startsOutward(text[i:]) {
			text = text[i:]
		}
	}
	switch {
	case strings.HasPrefix(text, "~"):
		if home := c.expandTilde(text); home.known {
			return home
		}
		return arg{}
	case startsOutward(text) || strings.Contains(text, "/../"):
		return arg{text: text, known: true, pattern: value.pattern}
	default:
		return arg{}
	}
}

// mayReach judges the paths in the arguments of a command that runs code. The command may
// read, write or run a path outside the project. mayReach skips paths that were judged
// before.
func (c *invoked) mayReach() {
	for i, a := range c.args {
		if i > mostFindings {
			c.unknown("it has too many parts to check")
			return
		}
		if !a.known || a.pipe || a.tree || a.below {
			continue
		}
		name, value, joined := strings.Cut(a.text, "=")
		switch {
		case c.name == "go" && (oneOf(strings.TrimLeft(name, "-"), goPatterns) || i > 0 && oneOf(strings.TrimLeft(word(c.args, i-1), "-"), goPatterns)):
			continue
		case strings.HasPrefix(a.text, "-") && joined:
			a = c.leadsOut(name, literal(value))
		case strings.HasPrefix(a.text, "-"):
			a = c.leadsOut("", literal(strings.TrimLeft(a.text, "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")))
		case joined || strings.Trim(a.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/~@+-") != "":
			continue // this is a text or a setting, not a path
		case i > 0 && strings.HasPrefix(word(c.args, i-1), "-"):
			a = c.leadsOut(word(c.args, i-1), a)
		default:
			a = c.leadsOut("", a)
		}
		label := strings.HasPrefix(a.text, "//") && oneOf(c.name, "bazel bazelisk buck pants") // //x is the name of a build target
		if a.text == "" || label || c.judgedPath(a.text) {
			continue
		}
		c.mayTouch(a)
	}
}

// goPatterns are options of go test whose values are patterns of test names.
const goPatterns = "run bench skip list fuzz"

// judgedPath reports whether a path needs no more judging. Either the command already has
// a finding for the path, or the path belongs to the system and the sandbox protects it.
func (c *invoked) judgedPath(text string) bool {
	if c.confined && isHarmlessSystem(path.Clean(text)) {
		return true
	}
	for _, s := range c.spots(literal(text), reads) {
		if slices.ContainsFunc(c.found[min(c.finding, len(c.found)):], func(f Finding) bool { return f.Subject == s.name() }) {
			return true
		}
	}
	return false
}
