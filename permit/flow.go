package permit

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analysis) binary(c *syntax.BinaryCmd, stdin arg, piped bool) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		forks := a.forks
		a.forks = true
		a.apart(func() { a.statement(c.X, stdin, piped) })
		a.apart(func() { a.statement(c.Y, a.output(c.X), true) })
		a.forks = forks
	case syntax.AndStmt:
		a.all(c, stdin, piped)
	default: // ||
		a.statement(c.X, stdin, piped)
		before := a.state.copied()
		a.statement(c.Y, stdin, piped)
		a.join(&before)
	}
}

// all goes through a chain of &&. Each of its parts knows that those before it have
// worked; behind it, any of them may have failed.
func (a *analysis) all(c *syntax.BinaryCmd, stdin arg, piped bool) {
	var chain []*syntax.Stmt
	for {
		chain = append(chain, c.Y)
		left, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || left.Op != syntax.AndStmt || c.X.Negated || c.X.Background || len(c.X.Redirs) > 0 {
			chain = append(chain, c.X)
			break
		}
		c = left
	}
	var failed []state
	for i, s := range slices.Backward(chain) {
		before := a.state.copied()
		a.statement(s, stdin, piped)
		if went := changed(&before, &a.state); went || i < len(chain)-1 { // the first is gone through for sure
			a.succeed(s, &before)
			failed = append(failed, before)
		}
	}
	for i := range failed {
		a.join(&failed[i])
	}
}

// succeed narrows the directory down behind a cd that must have worked.
func (a *analysis) succeed(s *syntax.Stmt, before *state) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || len(call.Args) == 0 || len(a.dirs) < 2 {
		return
	}
	if name := call.Args[0].Lit(); name == "cd" || name == "pushd" {
		a.dirs = slices.DeleteFunc(slices.Clone(a.dirs), func(d string) bool { return slices.Contains(before.dirs, d) })
	}
}

func (a *analysis) branch(c *syntax.IfClause, stdin arg, piped bool) {
	a.group(c.Cond, stdin, piped)
	before := a.state.copied()
	a.group(c.Then, stdin, piped)
	if c.Else != nil {
		after := a.state
		a.state = before
		a.branch(c.Else, stdin, piped)
		before = after
	}
	if len(c.Cond) > 0 { // else it is taken for sure
		a.join(&before)
	}
}

func (a *analysis) cases(c *syntax.CaseClause, stdin arg, piped bool) {
	a.value(c.Word)
	before := a.state.copied()
	all := before.copied()
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.inner(p)
		}
		a.state = before.copied()
		a.group(item.Stmts, stdin, piped)
		all.join(&a.state)
	}
	a.state = all
}

// loop goes through a body that may run any number of times.
func (a *analysis) loop(body []*syntax.Stmt, values func(), stdin arg, piped bool) {
	for _, s := range body { // what it sets may be set at its beginning
		a.drop(s)
	}
	before := a.state.copied()
	if values == nil {
		values = func() { a.group(body, stdin, piped) }
	}
	values()
	if once := a.state.copied(); changed(&before, &once) { // a cd in a loop: once more, from where it led
		values()
		if changed(&once, &a.state) {
			a.dirs = nil
		}
	}
	a.join(&before)
}

// mostValues is how many values of a loop are gone through one by one.
const mostValues = 16

func (a *analysis) each(c *syntax.ForClause, stdin arg, piped bool) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		a.inner(c.Loop)
		a.loop(c.Do, nil, stdin, piped)
		return
	}
	name := iter.Name.Value
	values := a.words(iter.Items)
	delete(a.vars, name)
	delete(a.patterns, name)
	if !iter.InPos.IsValid() || c.Select || len(values) > mostValues ||
		slices.ContainsFunc(values, func(v arg) bool { return !v.known }) {
		a.loop(c.Do, nil, stdin, piped)
		return
	}
	a.loop(c.Do, func() {
		for _, v := range values {
			a.set(name, v)
			a.group(c.Do, stdin, piped)
		}
		delete(a.vars, name)
		delete(a.patterns, name)
	}, stdin, piped)
}

func (a *analysis) define(c *syntax.FuncDecl) {
	if c.Name == nil || c.Body == nil {
		a.doubt(a.written(c), "it is not understood")
		return
	}
	if a.funcs == nil {
		a.funcs = map[string]*syntax.Stmt{}
	}
	a.funcs[c.Name.Value] = c.Body
}

// enter goes through a function that is called.
func (a *analysis) enter(name string, args []arg, body *syntax.Stmt, stdin arg, piped bool) {
	if slices.Contains(a.calls, name) {
		if a.forks {
			a.add(Finding{Kind: KindCommand, Subject: name, Zone: ZoneNever, Why: "a function that starts itself again and again: a fork bomb"})
			return
		}
		a.doubt(name, "the function calls itself")
		return
	}
	a.deeper(name, func() {
		a.calls = append(a.calls, name)
		params := a.params
		a.params = plainWords(args)
		if slices.ContainsFunc(args, func(w arg) bool { return w.pattern }) {
			a.params = nil
		}
		before := a.state.copied()
		a.statement(body, stdin, piped)
		a.drop(body) // it may be local, or behind a return
		a.join(&before)
		a.params = params
		a.calls = a.calls[:len(a.calls)-1]
	})
}
