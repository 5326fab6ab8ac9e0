package permit

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// state is what the shell knows at a point of the text.
type state struct {
	// dirs are the directories the shell may be in; none if that is not known.
	dirs []string
	// vars are the variables whose values are known.
	vars map[string]string
	// patterns are the variables of loops over files: what the files look like.
	patterns map[string]string
	// params are the words that the function at hand was called with; nil if they are
	// not known.
	params []string
	funcs  map[string]*syntax.Stmt
	// frozen are variables that are read-only: to set one fails, and the shell may go
	// on.
	frozen map[string]bool
	// lost says that commands may mean anything: PATH was changed, or a text was run
	// that is not known.
	lost string
}

func (s *state) copied() state {
	c := *s
	c.dirs = slices.Clone(s.dirs)
	c.vars, c.patterns, c.funcs, c.frozen = cloned(s.vars), cloned(s.patterns), cloned(s.funcs), cloned(s.frozen)
	return c
}

func cloned[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}

// join is the state after one of two ways was taken.
func (s *state) join(other *state) {
	for name, value := range s.vars {
		if theirs, ok := other.vars[name]; !ok || theirs != value {
			delete(s.vars, name)
		}
	}
	for name, pattern := range s.patterns {
		if theirs, ok := other.patterns[name]; !ok || theirs != pattern {
			delete(s.patterns, name)
		}
	}
	if !slices.Equal(s.params, other.params) {
		s.params = nil
	}
	for name, body := range other.funcs {
		if s.funcs == nil {
			s.funcs = map[string]*syntax.Stmt{}
		}
		if _, ok := s.funcs[name]; !ok {
			s.funcs[name] = body
		}
	}
	if s.dirs == nil || other.dirs == nil {
		s.dirs = nil
	} else {
		s.dirs = append(s.dirs, other.dirs...)
		slices.Sort(s.dirs)
		s.dirs = slices.Compact(s.dirs)
		if len(s.dirs) > mostDirectories {
			s.dirs = nil
		}
	}
	for name := range other.frozen {
		s.freeze(name)
	}
	if s.lost == "" {
		s.lost = other.lost
	}
}

// freeze notes that a variable is read-only. What it holds is not followed any more.
func (s *state) freeze(name string) {
	if s.frozen == nil {
		s.frozen = map[string]bool{}
	}
	s.frozen[name] = true
	delete(s.vars, name)
	delete(s.patterns, name)
}

// drop forgets the variables that are set somewhere in a part of the text.
func (s *state) drop(n syntax.Node) {
	for n := range syntax.Preorder(n) {
		if as, ok := n.(*syntax.Assign); ok && as.Name != nil {
			delete(s.vars, as.Name.Value)
			delete(s.patterns, as.Name.Value)
		}
	}
}

// forget drops what is known of variables, because a command sets them.
func (a *analysis) forget(names ...arg) {
	for _, n := range names {
		if !n.known {
			a.vars, a.patterns = nil, nil
			return
		}
		name, _, _ := strings.Cut(n.text, "=")
		name, _, _ = strings.Cut(name, "[")
		delete(a.vars, name)
		delete(a.patterns, name)
	}
}

// lose says that from here on anything may be meant.
func (a *analysis) lose(why string) {
	a.vars, a.patterns, a.params, a.dirs, a.lost = nil, nil, nil, nil, why
}

func changed(a, b *state) bool { return !slices.Equal(a.dirs, b.dirs) }
