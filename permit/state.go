package permit

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is what the shell knows at a point of the text. Its parts do not change: a
// state is copied by assigning it.
type state struct {
	// dirs are the directories the shell may be in, as it calls them itself: a link
	// that was gone through is part of the name. None if that is not known.
	dirs []string
	// vars are the variables whose values are known.
	vars *tree[string]
	// patterns are the variables of loops over files: what the files look like.
	patterns *tree[string]
	// deep are those among them whose files may be in any directory below.
	deep *tree[bool]
	// dirty are the variables that the text gave a value which may be no number. What
	// is computed with them may run commands. soiled says that any variable may be one.
	dirty  *tree[bool]
	soiled bool
	// integers are the variables whose values are computed when they are set, and keyed
	// those whose indexes are not. arrays are those that may be arrays: declare takes a
	// text in parentheses for a list of words to expand if they are.
	integers, keyed, arrays *tree[bool]
	// tokens are the variables that the text gave a number, the hash of a commit, or nothing.
	tokens *tree[bool]
	// deepGlobs says that ** stands for any number of directories: shopt -s globstar.
	deepGlobs bool
	// blind says that no variable is known from here on: a name may mean another.
	blind bool
	// params are the words that the function at hand was called with; nil if they are
	// not known.
	params []string
	// fileParam is the number of the parameter that names of files take the place of, and
	// what they look like: find has a shell run a text with {}. Its zero value is none.
	fileParam fileParam
	// funcs are the functions. One that has several bodies, because it depends which of
	// them the shell has come to, is a choice of them, and one in maybe may be none.
	funcs functions
	maybe *tree[bool]
	// frozen are variables that are read-only: to set one fails, and the shell may go
	// on.
	frozen *tree[bool]
	// exported is a variable that programs are given which may steer one in a way that
	// nobody thought of.
	exported string
	// moved is what may have put other files, and links, in the place of those that are
	// there now. Where paths lead is not known behind it.
	moved string
	// movedIn is the directory of the project that they are all in, if they are in one.
	movedIn string
	// trapped says that a trap may still run. It was judged when it was set.
	trapped bool
	// lost says that commands may mean anything: PATH was changed, or a text was run
	// that is not known.
	lost string
}

// everything is the value of state.exported if all variables and functions are exported.
const everything = "a variable"

// fileParam is a parameter that stands for files below a directory.
type fileParam struct {
	number, pattern string
	follows         bool // links among the files are followed
}

// join is the state after one of two ways was taken. It reports whether that says less
// than before.
func (s *state) join(other *state) (less bool) {
	before := *s
	s.vars, s.patterns = common(s.vars, other.vars), common(s.patterns, other.patterns)
	s.deep = united(s.deep, other.deep)
	s.tokens = common(s.tokens, other.tokens)
	s.dirty, s.soiled = united(s.dirty, other.dirty), s.soiled || other.soiled
	s.integers, s.keyed = united(s.integers, other.integers), common(s.keyed, other.keyed)
	s.arrays = united(s.arrays, other.arrays)
	s.blind, s.deepGlobs = s.blind || other.blind, s.deepGlobs || other.deepGlobs
	if !slices.Equal(s.params, other.params) || (s.params == nil) != (other.params == nil) {
		s.params = nil
	}
	if s.fileParam != other.fileParam {
		s.fileParam = fileParam{}
	}
	more := s.joinFunctions(other)
	s.frozen = united(s.frozen, other.frozen)
	s.joinDirectories(other.dirs)
	if s.lost == "" {
		s.lost = other.lost
	}
	if s.exported == "" || other.exported == everything {
		s.exported = other.exported
	}
	s.trapped = s.trapped || other.trapped
	switch {
	case s.moved == "":
		s.moved, s.movedIn = other.moved, other.movedIn
	case other.moved != "" && s.movedIn != other.movedIn:
		s.movedIn = ""
	}
	return more || s.deepGlobs != before.deepGlobs || s.tokens != before.tokens || s.vars != before.vars || s.patterns != before.patterns || s.dirty != before.dirty || s.soiled != before.soiled ||
		s.integers != before.integers || s.keyed != before.keyed || s.arrays != before.arrays || s.blind != before.blind || s.maybe != before.maybe || s.lost != before.lost || s.exported != before.exported || s.moved != before.moved || s.trapped != before.trapped || s.movedIn != before.movedIn ||
		changed(s, &before) || (s.params == nil) != (before.params == nil)
}

func (s *state) joinDirectories(dirs []string) {
	switch {
	case slices.Equal(s.dirs, dirs):
	case s.dirs == nil || dirs == nil:
		s.dirs = nil
	default:
		s.dirs = directories(slices.Concat(s.dirs, dirs))
	}
}

// directories are those that a line may be in, each once; nil if there are too many.
func directories(dirs []string) []string {
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) > mostDirectories {
		return nil
	}
	return dirs
}

// freeze notes that a variable is read-only. What it holds is not followed any more.
func (s *state) freeze(name string) {
	s.frozen = s.frozen.with(name, true)
	s.unknown(name)
}

// unknown drops what is known of a variable.
func (s *state) unknown(name string) {
	s.vars, s.patterns, s.tokens = s.vars.without(name), s.patterns.without(name), s.tokens.without(name)
}

// soil drops what is known of a variable, which may hold anything now.
func (s *state) soil(name string) {
	s.unknown(name)
	s.dirty = s.dirty.with(name, true)
}

// count drops what is known of a variable but that it holds a number.
func (s *state) count(name string) {
	s.unknown(name)
	s.dirty = s.dirty.without(name)
}

// soilAll drops what is known of all variables, which may hold anything now.
func (s *state) soilAll() { s.vars, s.patterns, s.tokens, s.soiled = nil, nil, nil, true }

// darken says that a name may mean another variable from here on.
func (s *state) darken() {
	s.soilAll()
	s.blind = true
}

// drop forgets the variables that are set somewhere in a part of the text.
func (s *state) drop(n syntax.Node) {
	for n := range syntax.Preorder(n) {
		if as, ok := n.(*syntax.Assign); ok && as.Name != nil {
			s.unknown(as.Name.Value)
		}
	}
}

// forget drops what is known of variables, because a command sets them.
func (a *analysis) forget(names ...arg) {
	for _, n := range names {
		if !n.known {
			a.soilAll()
			return
		}
		name, _, _ := strings.Cut(n.text, "=")
		name, _, _ = strings.Cut(name, "[")
		if a.integers.has(name) {
			a.doubt(n.text, "the shell evaluates the new value as arithmetic, which may run commands")
		}
		a.soil(name)
	}
}

// lose says that from here on anything may be meant.
func (a *analysis) lose(why string) {
	a.darken()
	a.params, a.fileParam, a.dirs, a.lost = nil, fileParam{}, nil, why
}

// disturb says that a trap which was set before may do something else now: a function, the
// directory, or what paths lead to changes.
func (a *analysis) disturb() {
	if a.trapped {
		a.doubt("trap", "a command after the trap may change what the trap does")
	}
}

func changed(a, b *state) bool {
	return !slices.Equal(a.dirs, b.dirs) || (a.dirs == nil) != (b.dirs == nil)
}
