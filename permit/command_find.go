package permit

import (
	"path"
	"slices"
	"strings"
)

func findCommands(t table) { t.add("find gfind", findCommand) }

// findCommand judges find. Its words are start directories, then an expression of tests
// and actions.
func findCommand(c *invoked) {
	c.known(c.args)
	args, follows := c.args, false
	for len(args) > 0 && args[0].known { // options of find itself
		switch a := args[0].text; {
		case oneOf(a, "-H -L -P -E -X -d -s -x") || strings.HasPrefix(a, "-O"):
			follows = a == "-L" || follows && a != "-P"
			args = args[1:]
		case a == "-D" || a == "-f":
			if a == "-f" && len(args) > 1 {
				c.read(args[1])
			}
			args = args[min(2, len(args)):]
		default:
			goto starts
		}
	}
starts:
	split := slices.IndexFunc(args, func(a arg) bool {
		return a.known && a.text != "" && (a.text[0] == '-' && len(a.text) > 1 || oneOf(a.text, "( ) ! ,"))
	})
	if split < 0 {
		split = len(args)
	}
	starts, expression := args[:split], args[split:]
	c.readAll(starts)
	if len(starts) == 0 {
		c.looksAround()
		starts = []arg{literal(".")}
	}
	follows = follows || slices.ContainsFunc(expression, func(a arg) bool { return a.known && a.text == "-follow" })
	if follows {
		c.readFollowing(starts, true)
	}
	f := finding{invoked: c, starts: starts, follows: follows}
	for len(expression) > 0 {
		expression = f.primary(expression)
	}
}

// finding is the state of findCommand while it parses the expression.
type finding struct {
	*invoked
	starts  []arg
	follows bool // find follows links
	named   bool // earlier tests select only files with harmless names
	plain   bool // earlier tests select only regular files, not links
	not     bool // the next test is negated
	nested  bool // there are parentheses that the analysis does not understand
}

// primary parses one test or action of the expression. It returns the words after that
// test or action.
func (f *finding) primary(words []arg) (rest []arg) {
	name, rest := word(words, 0), words[1:]
	value := arg{text: "(nothing)"}
	if len(rest) > 0 {
		value = rest[0]
	}
	skip := func(n int) []arg { return rest[min(n, len(rest)):] }
	not := f.not
	f.not = false
	switch name {
	case "!", "-not":
		f.not = !not
		return rest
	case "-o", "-or", ",":
		f.named, f.plain = false, false
		return rest
	case "(":
		if n := namesInside(rest); n > 0 {
			f.named = f.named || !not && !f.nested
			return skip(n)
		}
		f.nested = true
		return rest
	case "-name", "-iname":
		f.named = f.named || !not && !f.nested && isOrdinary(word(rest, 0))
		return skip(1)
	case "-type":
		f.plain = f.plain || !not && !f.nested && !f.follows && word(rest, 0) == "f"
		return skip(1)
	case "-exec", "-execdir", "-ok", "-okdir":
		return f.run(rest)
	case "-delete":
		f.zone(ZoneWorkspace, "")
		f.protect(destroyFiles, "removes the files that a search finds")
		for _, start := range f.starts {
			if f.named && !f.nested {
				start = under(start, literal("{}"))
				start.below = true
			}
			f.remove(start)
		}
		return rest
	case "-fprint", "-fprint0", "-fls":
		f.write(value)
		return skip(1)
	case "-fprintf":
		f.write(value)
		return skip(2)
	case "-files0-from":
		f.read(value)
		f.unknown("cannot determine where it searches")
		return skip(1)
	case "-newer", "-anewer", "-cnewer", "-samefile":
		f.read(value)
		return skip(1)
	}
	switch {
	case strings.HasPrefix(name, "-newer") && !strings.HasSuffix(name, "t"):
		f.read(value)
		return skip(1)
	case oneOf(name, "-path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -xtype -size -perm -user -group -uid -gid "+
		"-mtime -atime -ctime -mmin -amin -cmin -used -links -inum -fstype -maxdepth -mindepth -printf -context"):
		return skip(1)
	default:
		return rest
	}
}

// run judges the command of an -exec. It returns the words after the command.
func (f *finding) run(words []arg) (rest []arg) {
	end := slices.IndexFunc(words, func(a arg) bool { return a.known && a.text == ";" })
	for i := 1; i < len(words) && (end < 0 || i < end); i++ {
		if word(words, i) == "+" && word(words, i-1) == "{}" {
			end = i
		}
	}
	if end < 0 {
		end = len(words)
	}
	command := words[:end]
	f.runOnEach(command, f.starts, f.named && !f.nested, f.plain && !f.nested)
	return words[min(end+1, len(words)):]
}

// isOrdinary reports whether a name pattern matches no protected file.
func isOrdinary(pattern string) bool {
	pattern = strings.ToLower(pattern)
	return pattern != "" && !slices.ContainsFunc(steering, func(name string) bool {
		ok, err := path.Match(pattern, name)
		return ok || err != nil
	})
}

// namesInside returns the number of words up to a closing parenthesis, as in -name a -o
// -name b ). It returns 0 if there is anything other than alternative names that are
// harmless.
func namesInside(words []arg) int {
	for i := 0; i+2 < len(words); i += 3 {
		if !oneOf(word(words, i), "-name -iname") || !isOrdinary(word(words, i+1)) {
			return 0
		}
		switch word(words, i+2) {
		case ")":
			return i + 3
		case "-o", "-or":
		default:
			return 0
		}
	}
	return 0
}

// steering are the names of files that control Belay or git, and of the directories that
// contain them.
var steering = []string{
	".belay", ".claude", "belay.yaml", "belay.yml", ".git", "config", "config.worktree", "hooks", "attributes", ".gitconfig",
	"pre-commit", "commit-msg", "post-checkout", "post-merge", "pre-push", "post-commit", "prepare-commit-msg", "pre-rebase", "post-rewrite",
}
