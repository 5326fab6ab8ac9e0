package permit

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is the state of the shell at a point of the line. Its parts are immutable, so an
// assignment makes a full copy.
type state struct {
	// dirs are the possible working directories, as the shell names them, without
	// following links. dirs is nil if the directories are unknown.
	dirs []string
	// vars are the variables whose values are known.
	vars *tree[string]
	// patterns has the variables of loops over files, with the pattern of the files.
	patterns *tree[string]
	// deep has the variables of patterns whose files may be at any depth below a
	// directory.
	deep *tree[bool]
	// dirty are the variables that the line may have set to something other than a
	// number. Arithmetic with them may run commands. allDirty is set if every variable
	// may be dirty.
	dirty    *tree[bool]
	allDirty bool
	// integers are the variables whose values the shell evaluates as arithmetic. keyed
	// are the associative arrays, whose indexes the shell does not evaluate. arrays are
	// the variables that may be arrays. For them, declare expands a text in parentheses
	// to a list of words.
	integers, keyed, arrays *tree[bool]
	// tokens are the variables that the line has set to a number, to the hash of a
	// commit, or to an empty value.
	tokens *tree[bool]
	// deepGlobs is set if ** matches any number of directories, as after shopt -s
	// globstar.
	deepGlobs bool
	// anyAlias is set if any name may refer to another variable. Then all variables are
	// unknown.
	anyAlias bool
	// params are the arguments of the current function, or nil if they are unknown.
	params []string
	// fileParam is the parameter that is a file name, as in find -exec sh -c '...' sh {}.
	// The zero value means that there is none.
	fileParam fileParam
	// funcs are the functions. If branches define a function differently, it has several
	// bodies. A function in maybe may be undefined.
	funcs functions
	maybe *tree[bool]
	// frozen are read-only variables. Setting such a variable fails, and the shell may
	// continue.
	frozen *tree[bool]
	// exported is an unfamiliar environment variable that may change what a program does.
	exported string
	// moved is the command that may have replaced files with other files or links. After
	// that command, nobody knows where paths lead.
	moved string
	// movedIn is the directory of the project that contains all files which moved may
	// have replaced. It is empty if there is no such directory.
	movedIn string
	// trapped is set if a trap may still run. The trap itself was judged when it was set.
	trapped bool
	// lost is the reason why commands may run anything, for example because PATH was
	// changed or an earlier part of the line ran an unknown script.
	lost string
}

// everything is the value of state.exported if all variables and functions are exported.
const everything = "a variable"

// fileParam is a parameter whose value is a file below a directory.
type fileParam struct {
	number, pattern string
	follows         bool // the command may follow links among the files
}

// join merges the state of another branch into s. It reports whether s knows less than
// before.
func (s *state) join(other *state) (less bool) {
	before := *s
	s.vars, s.patterns = common(s.vars, other.vars), common(s.patterns, other.patterns)
	s.deep = united(s.deep, other.deep)
	s.tokens = common(s.tokens, other.tokens)
	s.dirty, s.allDirty = united(s.dirty, other.dirty), s.allDirty || other.allDirty
	s.integers, s.keyed = united(s.integers, other.integers), common(s.keyed, other.keyed)
	s.arrays = united(s.arrays, other.arrays)
	s.anyAlias, s.deepGlobs = s.anyAlias || other.anyAlias, s.deepGlobs || other.deepGlobs
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
	return more || s.deepGlobs != before.deepGlobs || s.tokens != before.tokens || s.vars != before.vars || s.patterns != before.patterns || s.dirty != before.dirty || s.allDirty != before.allDirty ||
		s.integers != before.integers || s.keyed != before.keyed || s.arrays != before.arrays || s.anyAlias != before.anyAlias || s.maybe != before.maybe || s.lost != before.lost || s.exported != before.exported || s.moved != before.moved || s.trapped != before.trapped || s.movedIn != before.movedIn ||
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

// directories sorts possible directories and removes duplicates. It returns nil if there
// are too many.
func directories(dirs []string) []string {
	slices.Sort(dirs)
	if dirs = slices.Compact(dirs); len(dirs) > mostDirectories {
		return nil
	}
	return dirs
}

// freeze records that a variable is read-only. Its value is unknown afterwards.
func (s *state) freeze(name string) {
	s.frozen = s.frozen.with(name, true)
	s.unknown(name)
}

// unknown forgets the value of a variable.
func (s *state) unknown(name string) {
	s.vars, s.patterns, s.tokens = s.vars.without(name), s.patterns.without(name), s.tokens.without(name)
}

// markDirty forgets the value of a variable. The new value may be anything.
func (s *state) markDirty(name string) {
	s.unknown(name)
	s.dirty = s.dirty.with(name, true)
}

// count forgets the value of a variable, but records that it is a number.
func (s *state) count(name string) {
	s.unknown(name)
	s.dirty = s.dirty.without(name)
}

// markAllDirty forgets the values of all variables. The new values may be anything.
func (s *state) markAllDirty() { s.vars, s.patterns, s.tokens, s.allDirty = nil, nil, nil, true }

// loseVariables records that any name may refer to another variable from here on.
func (s *state) loseVariables() {
	s.markAllDirty()
	s.anyAlias = true
}

// drop forgets the variables that a part of the line sets.
func (s *state) drop(n syntax.Node) {
	for n := range syntax.Preorder(n) {
		if as, ok := n.(*syntax.Assign); ok && as.Name != nil {
			s.unknown(as.Name.Value)
		}
	}
}

// forget forgets the values of variables that a command sets.
func (a *analysis) forget(names ...arg) {
	for _, n := range names {
		if !n.known {
			a.markAllDirty()
			return
		}
		name, _, _ := strings.Cut(n.text, "=")
		name, _, _ = strings.Cut(name, "[")
		if a.integers.has(name) {
			a.doubt(n.text, "the shell evaluates the new value as arithmetic, which may run commands")
		}
		a.markDirty(name)
	}
}

// lose records that commands may run anything from here on.
func (a *analysis) lose(why string) {
	a.loseVariables()
	a.params, a.fileParam, a.dirs, a.lost = nil, fileParam{}, nil, why
}

// disturbTrap records that an earlier trap may now do something else, because a function,
// the directory or the target of a path has changed.
func (a *analysis) disturbTrap() {
	if a.trapped {
		a.doubt("trap", "a command after the trap may change what the trap does")
	}
}

func changed(a, b *state) bool {
	return !slices.Equal(a.dirs, b.dirs) || (a.dirs == nil) != (b.dirs == nil)
}
