package permit

import (
	"maps"
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

// functions has the functions of the line by name. States share these maps, so code
// replaces a map and never changes it.
type functions = map[string]*syntax.Stmt

const (
	// mostFunctions is how many functions a line may have.
	mostFunctions = 200
	// mostBodies is how many alternative bodies a function may have.
	mostBodies = 16
)

// noWord marks a case statement that the analysis made from the alternative bodies of a
// function. Case statements of the line have other words.
var noWord = &syntax.Word{}

// anyBody stands for an unknown body of a function. It is a node that no shell script
// contains.
var anyBody = &syntax.Stmt{Cmd: &syntax.TestDecl{Description: noWord, Body: &syntax.Stmt{}}}

// bodies returns the alternative bodies of a function. There are several if different
// branches define the function.
func bodies(body *syntax.Stmt) []*syntax.Stmt {
	choice, ok := body.Cmd.(*syntax.CaseClause)
	if !ok || choice.Word != noWord {
		return []*syntax.Stmt{body}
	}
	var all []*syntax.Stmt
	for _, item := range choice.Items {
		all = append(all, item.Stmts...)
	}
	return all
}

// either returns a function with the bodies of a and b. It returns a if b adds nothing,
// and nil if there are too many bodies.
func either(a, b *syntax.Stmt) *syntax.Stmt {
	all := bodies(a)
	had := len(all)
	if slices.Contains(all, anyBody) {
		return a
	}
	for _, body := range bodies(b) {
		if !slices.Contains(all, body) {
			all = append(all, body)
		}
	}
	switch {
	case len(all) == had:
		return a
	case len(all) > mostBodies:
		return nil
	}
	choice := &syntax.CaseClause{Word: noWord}
	for _, body := range all {
		choice.Items = append(choice.Items, &syntax.CaseItem{Op: syntax.Break, Stmts: []*syntax.Stmt{body}})
	}
	return &syntax.Stmt{Position: all[0].Position, Cmd: choice}
}

// joinFunctions adds the functions of another branch. It reports whether a function was
// added or changed.
func (s *state) joinFunctions(other *state) (more bool) {
	if len(s.funcs) == 0 && len(other.funcs) == 0 {
		return false
	}
	s.maybe = united(s.maybe, other.maybe)
	joined := s.funcs
	for name, theirs := range other.funcs {
		ours, ok := s.funcs[name]
		body := theirs
		if ok {
			body = either(ours, theirs)
		} else {
			s.maybe = s.maybe.with(name, true)
		}
		if body == ours {
			continue
		}
		if !more {
			joined, more = cloned(s.funcs), true
		}
		if body == nil {
			body = anyBody
		}
		joined[name] = body
	}
	for name := range s.funcs {
		if _, ok := other.funcs[name]; !ok {
			s.maybe = s.maybe.with(name, true)
		}
	}
	s.funcs = joined
	return more
}

// cloned returns a copy of the functions that the caller may change.
func cloned(funcs functions) functions {
	if funcs == nil {
		return functions{}
	}
	return maps.Clone(funcs)
}

func (a *analysis) define(c *syntax.FuncDecl) {
	if c.Name == nil || c.Body == nil {
		a.doubt(a.written(c), "Belay does not understand this construct")
		return
	}
	if a.exported == everything {
		a.doubt(c.Name.Value, "shells that start later inherit this function")
	}
	if oneOf(c.Name.Value, "command_not_found_handle command_not_found_handler") {
		a.doubt(c.Name.Value, "the shell runs this function for every command that it does not find: give it another name")
	}
	a.disturbTrap()
	a.funcs = cloned(a.funcs)
	if a.funcs[c.Name.Value] = c.Body; len(a.funcs) > mostFunctions {
		a.doubt(c.Name.Value, "the line has too many functions to check")
		a.lose("the line has too many functions to check")
		a.funcs = nil
	}
	a.maybe = a.maybe.without(c.Name.Value)
}

func (a *analysis) undefine(name string) {
	a.disturbTrap()
	a.funcs = cloned(a.funcs)
	delete(a.funcs, name)
}

// isFunction reports whether a name is, or may be, a function of the line.
func (a *analysis) isFunction(name string) bool {
	_, ok := a.funcs[name]
	return ok
}

func (a *analysis) enter(name string, args []arg, body *syntax.Stmt, stdin arg, piped bool) {
	if slices.Contains(a.calls, name) {
		if a.forks {
			a.add(Finding{Kind: KindCommand, Subject: name, Zone: ZoneNever, Why: "this function starts itself again and again (a fork bomb)"})
			return
		}
		a.doubt(name, "the function calls itself")
		return
	}
	a.deeper(name, func() {
		a.calls = append(a.calls, name)
		params, file := a.params, a.fileParam
		a.params, a.fileParam = plainWords(args), fileParam{}
		if slices.ContainsFunc(args, func(w arg) bool { return !w.isText() }) {
			a.params = nil
		}
		before := a.state
		a.leaving(func() { a.statement(body, stdin, piped) })
		a.drop(body) // variables that the body sets may be local
		a.join(&before)
		a.params, a.fileParam = params, file
		a.calls = a.calls[:len(a.calls)-1]
	})
}

// leaving analyses a loop or a function. Then it joins the states that leave recorded at
// break, continue and return.
func (a *analysis) leaving(do func()) {
	depth := len(a.exits)
	a.exits = append(a.exits, nil)
	do()
	if left := a.exits[depth]; left != nil {
		a.join(left)
	}
	a.exits = a.exits[:depth]
}

// leave records the state at a break, continue or return. The analysis uses this state
// for all enclosing loops and functions, because it does not determine which of them
// ends.
func (a *analysis) leave() {
	for i, left := range a.exits {
		if left == nil {
			now := a.state
			a.exits[i] = &now
			continue
		}
		left.join(&a.state)
	}
}
