package permit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// names describes the data in a pipe, if the data is file names that a search in the
// project has found. Then xargs runs its command on files of the project.
type names struct {
	// found is set if the data is file names.
	found bool
	// zeros is set if zero bytes end the names instead of newlines, so that xargs cannot
	// misread them.
	zeros bool
	// hidden is set if files in .git may be among the names. plain is set if every name
	// begins with a directory, so that none looks like an option.
	hidden, plain bool
	// files is set if all names are regular files, not links.
	files bool
	// pattern is a pattern that all names match, if the search was for certain names.
	pattern string
	// starts are the words of the search that name directories or patterns. If there are
	// none, the search covers everything.
	starts []string
}

// noNames describes data that is not file names.
var noNames names

// listing returns the names that a statement writes to a pipe.
func (a *analysis) listing(s *syntax.Stmt) names {
	if pipe, ok := s.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe && len(s.Redirs) == 0 && !s.Negated {
		names := a.listing(pipe.X)
		if words, ok := a.literals(pipe.Y); !ok || !keepsNames(words, names.zeros) {
			return noNames
		}
		return names
	}
	words, ok := a.literals(s)
	if !ok {
		return noNames
	}
	for _, w := range words {
		if w == "?" || filepath.IsAbs(w) || strings.Contains(w, "..") || strings.HasPrefix(w, "~") {
			return noNames // the command may list other directories
		}
	}
	args := words[1:]
	switch words[0] {
	case "find", "gfind":
		return findNames(args)
	case "fd", "fdfind":
		return givenOptions(args, "0IHFgipas", "print0 hidden no-ignore glob fixed-strings type= extension= exclude= max-depth= t= e= E= d=", names{}).anywhere().asNames("0", "print0")
	case "git":
		return gitNames(args)
	case "grep", "egrep", "fgrep":
		n := givenOptions(args, "rRlLiEFwxvshZI", "include= exclude= exclude-dir= null recursive files-with-matches files-without-match e=", names{hidden: true})
		if !n.has("e") && len(n.names.starts) > 0 {
			n.names.starts = n.names.starts[1:] // the first word is the search pattern
		}
		starts := n.names.starts
		if n = n.anywhere(); len(starts) > 0 && !slices.ContainsFunc(starts, func(w string) bool {
			return !isOrdinary(w) || strings.ContainsAny(w, "*?[") || filepath.Clean(w) == "."
		}) {
			n.names.starts, n.names.hidden = starts, false
		}
		return n.only("l L files-with-matches files-without-match").asNames("Z", "null")
	case "rg":
		n := givenOptions(args, "0liFwsSvL", "null files files-with-matches files-without-match ignore-case fixed-strings word-regexp glob= type= g= t= T= e=", names{})
		if !n.has("files e") && len(n.names.starts) > 0 {
			n.names.starts = n.names.starts[1:] // the first word is the search pattern
		}
		return n.only("l files files-with-matches files-without-match").asNames("0", "null")
	case "ls":
		return listNames(args)
	default:
		return noNames
	}
}

// listNames returns the names that ls writes. They are in the current directory, and
// begin with a dot only if an option asks for such names.
func listNames(args []string) names {
	l := givenOptions(args, "1atrSAd", "", names{})
	if starts := l.names.starts; len(starts) == 1 && isOrdinary(starts[0]) && strings.ContainsAny(starts[0], "*?") && !strings.ContainsAny(starts[0], "/\\[") {
		l.names.pattern, l.names.starts = starts[0], nil
	}
	l.names.hidden = l.has("a A") || len(l.names.starts) > 0
	return l.asNames("")
}

// fileLister is a command that may list file names, with its options.
type fileLister struct {
	ok    bool
	given []string
	names names
}

// givenOptions parses the options of a command. If an option is in neither list, the
// command does not count as a lister. In the lists, an option with a value ends with =.
func givenOptions(args []string, letters, long string, n names) fileLister {
	l := fileLister{ok: true, names: n}
	for i := 0; i < len(args); i++ {
		arg, isLong := strings.CutPrefix(args[i], "--")
		name, _, joined := strings.Cut(arg, "=")
		switch {
		case args[i] == "--":
			l.names.starts = append(l.names.starts, args[i+1:]...)
			return l
		case isLong && oneOf(name, long) && !joined, isLong && joined && oneOf(name+"=", long):
			l.given = append(l.given, name)
		case isLong && oneOf(name+"=", long):
			l.given = append(l.given, name)
			i++
		case isLong:
			l.ok = false
		case len(arg) > 1 && arg[0] == '-' && len(arg) == 2 && oneOf(arg[1:]+"=", long):
			l.given = append(l.given, arg[1:])
			i++
		case len(arg) <= 1 || arg[0] != '-':
			l.names.starts = append(l.names.starts, args[i])
		default:
			l.ok = l.ok && strings.Trim(arg[1:], letters) == ""
			l.given = append(l.given, strings.Split(arg[1:], "")...)
		}
	}
	return l
}

func (l fileLister) has(names string) bool {
	for _, name := range l.given {
		if oneOf(name, names) {
			return true
		}
	}
	return false
}

// only returns l. The result counts as a lister only if one of the options was given.
func (l fileLister) only(names string) fileLister {
	l.ok = l.ok && l.has(names)
	return l
}

// anywhere returns a lister whose words do not show which directories it searches.
func (l fileLister) anywhere() fileLister {
	l.names.starts = nil
	return l
}

// asNames returns the names that a lister writes. With one of the options in zeros, zero
// bytes end the names.
func (l fileLister) asNames(zeros ...string) names {
	if !l.ok {
		return noNames
	}
	l.names.found, l.names.zeros = true, l.has(strings.Join(zeros, " "))
	l.names.hidden = l.names.hidden || l.has("hidden H")
	return l.names
}

// findNames returns the names that find writes. It returns noNames if find prints
// something else.
func findNames(args []string) names {
	n := names{found: true, hidden: true, plain: true}
	start := true
	for i, w := range args {
		switch {
		case strings.HasPrefix(w, "-f") || strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || w == "-printf" || w == "-ls" || w == "-print":
			return noNames
		case w == "-print0":
			n.zeros = true
		case w == "-type" && i+1 < len(args) && args[i+1] == "f":
			n.files = true
		}
		if (w == "-name" || w == "-iname") && i+1 < len(args) && !slices.ContainsFunc(args, func(w string) bool { return oneOf(w, "-o -or -not ! , (") }) && isOrdinary(args[i+1]) {
			n.hidden, n.pattern = false, args[i+1]
		}
		if start = start && !strings.HasPrefix(w, "-") && w != "(" && w != "!"; start && w == "?" {
			return noNames
		}
	}
	if slices.ContainsFunc(args, func(w string) bool { return oneOf(w, "-L -follow -o -or -not ! , (") }) {
		n.files = false
	}
	return n
}

// gitNames returns the names that git writes when it lists files. These files are never
// in .git.
func gitNames(args []string) names {
	if len(args) == 0 {
		return noNames
	}
	switch args[0] {
	case "ls-files":
		n := givenOptions(args[1:], "zmdoc", "cached others modified deleted exclude-standard recurse-submodules full-name deduplicate exclude= x=", names{}).asNames("z")
		if last := args[len(args)-1]; n.found && len(args) == 2 && isOrdinary(last) && !strings.ContainsAny(last, "/:-") {
			n.pattern = last
		}
		return n
	case "diff", "diff-index", "diff-tree":
		return givenOptions(args[1:], "zrM", "name-only cached staged diff-filter= relative no-renames merge-base no-commit-id", names{}).only("name-only").anywhere().asNames("z")
	case "grep":
		return givenOptions(args[1:], "liEFwzvP", "name-only files-with-matches null ignore-case cached untracked e=", names{}).only("l name-only files-with-matches").anywhere().asNames("z", "null")
	default:
		return noNames
	}
}

// keepsNames reports whether a command in a pipe passes lines of its input on unchanged.
func keepsNames(words []string, zeros bool) bool {
	l := fileLister{}
	switch args := words[1:]; words[0] {
	case "grep", "egrep", "fgrep":
		l = givenOptions(args, "vEFiwxaz", "invert-match ignore-case null-data e=", noNames)
		operands := 0
		for i, w := range args {
			if !strings.HasPrefix(w, "-") && (i == 0 || args[i-1] != "-e") {
				operands++
			}
		}
		l.ok = l.ok && operands <= 1
	case "sort":
		l = givenOptions(args, "urnVz", "unique reverse zero-terminated", noNames)
		l.ok = l.ok && !hasOperands(args)
	case "uniq", "tac", "cat":
		l.ok = len(args) == 0
	case "head", "tail":
		for _, w := range args {
			l.ok = strings.Trim(w, "-n+0123456789z") == ""
			if !l.ok {
				return false
			}
			l.given = append(l.given, strings.Split(w, "")...)
		}
		l.ok = true
	}
	return l.ok && (!zeros || l.has("z zero-terminated null-data"))
}

func hasOperands(args []string) bool {
	for _, w := range args {
		if !strings.HasPrefix(w, "-") {
			return true
		}
	}
	return false
}

// overNames returns the value of a loop variable if the loop runs over names that a
// search in the project has found, as in for f in $(git ls-files). The value is a pattern
// for files at any depth.
func (a *analysis) overNames(items []*syntax.Word) (arg, bool) {
	if len(items) != 1 || len(items[0].Parts) != 1 {
		return arg{}, false
	}
	sub, ok := items[0].Parts[0].(*syntax.CmdSubst)
	if !ok || len(sub.Stmts) != 1 {
		return arg{}, false
	}
	names := a.listing(sub.Stmts[0])
	if !names.found || names.zeros || names.hidden {
		return arg{}, false
	}
	odd, steers := a.surprises(names.starts)
	if odd || steers && names.pattern == "" {
		return arg{}, false
	}
	if names.pattern == "" || strings.ContainsAny(names.pattern, "/\\[") {
		names.pattern = "*"
	}
	return arg{text: "./" + names.pattern, known: true, pattern: true, below: true, follows: true}, true
}

// surprises searches the project. odd is set if xargs would misread a name. steers is set
// if the search finds a file that controls Belay, git or another program. If there are
// too many files, both are set.
func (a *analysis) surprises(starts []string) (odd, steers bool) {
	inside := len(a.dirs) > 0
	for _, dir := range a.dirs {
		s := a.floor.locate(dir)
		inside = inside && s.inside
	}
	if !inside || a.namesFiles() {
		return true, true
	}
	within := a.within(starts)
	var look func(dir string)
	look = func(dir string) {
		for _, e := range a.entriesOf(dir) {
			name := e.Name()
			switch {
			case name == ".git":
				nested := len(starts) > 0 && dir != filepath.FromSlash(a.floor.project.path)
				steers = steers || nested && within(filepath.Join(dir, name))
				continue
			case privatePath(name) != "":
				steers = steers || within(filepath.Join(dir, name))
			}
			odd = odd || isOdd(name)
			if e.IsDir() && !odd && a.looks <= mostLooks {
				look(filepath.Join(dir, name))
			}
		}
	}
	look(filepath.FromSlash(a.floor.project.path))
	if a.looks > mostLooks {
		return true, true
	}
	return odd, steers
}

// isOdd reports whether a file name could be read as an option, or as a path outside the
// current directory. A blank does no harm, because it only splits a name in two.
func isOdd(name string) bool {
	return name == "" || name[0] == '-' || strings.ContainsAny(name, "'\"\\\n\r\v\f") || strings.ContainsAny(name[len(name)-1:], " \t") ||
		strings.Contains(name, " -") || strings.Contains(name, "\t-") || strings.Contains(name, " ..") || strings.Contains(name, "\t..")
}

// namesFiles reports whether the line may have created files with odd names.
func (a *analysis) namesFiles() bool {
	for i := range a.found {
		switch f := &a.found[i]; {
		case f.Kind == KindWrite:
			for name := range strings.SplitSeq(f.Subject, "/") {
				if name != "" && isOdd(name) {
					return true
				}
			}
		case f.Kind == KindCommand && f.Zone == ZoneWorkspace && unpacksFiles(f.words):
			return true
		}
	}
	return false
}

// unpacksFiles reports whether a command creates files that its arguments do not name.
func unpacksFiles(words []string) bool {
	if len(words) == 0 {
		return false
	}
	switch name := base(words[0]); name {
	case "git":
		return slices.ContainsFunc(words[1:], func(w string) bool {
			return oneOf(w, "checkout switch stash merge rebase pull apply am restore reset clone worktree submodule cherry-pick revert read-tree checkout-index bisect sparse-checkout")
		})
	default:
		return oneOf(name, "tar gtar bsdtar unzip 7z 7za 7zr cpio pax patch ar jar rsync unar dtrx svn hg unsquashfs")
	}
}

// within returns a function that reports whether a search covers a path. starts are the
// words that name the directories of the search.
func (a *analysis) within(starts []string) func(path string) bool {
	if len(starts) == 0 || len(a.dirs) != 1 {
		return func(string) bool { return true }
	}
	var dirs []string
	for _, start := range starts {
		switch pattern := strings.ContainsAny(start, "*?[:?"); {
		case !pattern:
			dirs = append(dirs, filepath.FromSlash(a.floor.locateFrom(a.dirs[0], filepath.FromSlash(start)).path))
		case strings.Contains(start, "/") || !isOrdinary(start):
			return func(string) bool { return true }
		}
	}
	return func(path string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool {
			_, ok := (root{filepath.ToSlash(dir)}).holds(filepath.ToSlash(path))
			return ok
		})
	}
}

// mostLooks is how many files the analysis of one call may examine.
const mostLooks = 20_000

// entriesOf returns the files in a directory. It returns none if mostLooks is reached.
func (a *analysis) entriesOf(dir string) []os.DirEntry {
	if a.looks++; a.looks > mostLooks {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // it was only read
	var all []os.DirEntry
	for a.looks <= mostLooks {
		some, err := d.ReadDir(256)
		all = append(all, some...)
		if a.looks += len(some); err != nil || len(some) == 0 {
			break
		}
	}
	return all
}
