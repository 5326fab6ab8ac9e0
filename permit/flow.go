package permit

import (
	"slices"

	"mvdan.cc/sh/v3/syntax"
)

func (a *analysis) binary(c *syntax.BinaryCmd, stdin arg, piped bool) {
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		forks, names := a.forks, a.names
		a.forks = true
		a.apart(func() { a.statement(c.X, stdin, piped) })
		a.names = a.listing(c.X)
		a.apart(func() { a.statement(c.Y, a.output(c.X), true) })
		a.forks, a.names = forks, names
	case syntax.AndStmt:
		a.all(c, stdin, piped)
	default: // ||
		a.statement(c.X, stdin, piped)
		before := a.state
		a.statement(c.Y, stdin, piped)
		a.join(&before)
	}
}

// all analyses a chain of &&. Each part runs only if all parts before it succeeded. After
// the chain, any part may have failed.
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
		before := a.state
		a.statement(s, stdin, piped)
		if went := changed(&before, &a.state); went || i < len(chain)-1 { // i is len(chain)-1 for the first part, which always runs
			a.succeed(s, &before)
			failed = append(failed, before)
		}
	}
	for i := range slices.Backward(failed) { // join neighbours first, because they are the most similar
		a.join(&failed[i])
	}
}

// succeed removes the directories that are impossible after a successful cd.
func (a *analysis) succeed(s *syntax.Stmt, before *state) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || s.Negated || len(call.Args) == 0 || len(a.dirs) < 2 {
		return
	}
	if name := call.Args[0].Lit(); (name == "cd" || name == "pushd") && !a.isFunction(name) {
		if dirs := slices.DeleteFunc(slices.Clone(a.dirs), func(d string) bool { return slices.Contains(before.dirs, d) }); len(dirs) > 0 {
			a.dirs = dirs
		}
	}
}

func (a *analysis) branch(c *syntax.IfClause, stdin arg, piped bool) {
	a.group(c.Cond, stdin, piped)
	before := a.state
	a.group(c.Then, stdin, piped)
	if c.Else != nil {
		after := a.state
		a.state = before
		a.branch(c.Else, stdin, piped)
		before = after
	}
	if len(c.Cond) > 0 { // without a condition, the branch always runs
		a.join(&before)
	}
}

// cases analyses a case statement. After ;& and ;;& the shell continues with another
// item.
func (a *analysis) cases(c *syntax.CaseClause, stdin arg, piped bool) {
	a.value(c.Word)
	all := a.state
	start := a.state
	for _, item := range c.Items {
		a.state = start
		for _, p := range item.Patterns {
			a.inner(p)
		}
		start = a.state
		a.group(item.Stmts, stdin, piped)
		if item.Op != syntax.Break {
			start.join(&a.state)
		}
		all.join(&a.state)
	}
	all.join(&start)
	a.state = all
}

// mostRounds limits how often a loop is analysed. If the state still changes after that,
// the effects of the loop are unknown.
const mostRounds = 3

// loop analyses a body that may run any number of times. It repeats the analysis until
// the state stops changing.
func (a *analysis) loop(body []*syntax.Stmt, once func(), stdin arg, piped bool) {
	for _, s := range body { // at the start of the body, variables may have the values of an earlier round
		a.drop(s)
	}
	if once == nil {
		once = func() { a.group(body, stdin, piped) }
	}
	for round := 1; ; round++ {
		before := a.state
		a.leaving(once)
		after := a.state
		a.state = before
		if !a.join(&after) {
			return
		}
		switch {
		case round == mostRounds:
			a.doubt("a loop", "it has too many parts to check")
			a.lose("an earlier loop is too complex to check")
			return
		case round > 1 && changed(&before, &a.state):
			a.dirs = nil
		}
	}
}

// mostValues is how many values of a for loop are analysed one by one.
const mostValues = 16

func (a *analysis) each(c *syntax.ForClause, stdin arg, piped bool) {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		a.loop(c.Do, func() {
			a.inner(c.Loop)
			a.group(c.Do, stdin, piped)
			a.inner(c.Loop) // the condition runs at least once
		}, stdin, piped)
		return
	}
	name := iter.Name.Value
	values := a.words(iter.Items)
	if files, ok := a.overNames(iter.Items); ok && !c.Select {
		values = []arg{files}
	}
	// A body that would never run is analysed, too.
	if !iter.InPos.IsValid() || c.Select || len(values) == 0 || len(values) > mostValues ||
		slices.ContainsFunc(values, func(v arg) bool { return !v.known }) {
		given := iter.InPos.IsValid() && !c.Select && a.countingWords(iter.Items)
		if a.unknown(name); !given {
			a.markDirty(name)
		}
		a.loop(c.Do, func() {
			if a.hazard(name, arg{text: "…"}); given {
				a.count(name)
			} else {
				a.forget(literal(name))
			}
			a.group(c.Do, stdin, piped)
		}, stdin, piped)
		return
	}
	a.unknown(name)
	if slices.ContainsFunc(values, func(v arg) bool { return v.pattern || !isInteger(v.text) }) {
		a.markDirty(name)
	}
	a.loop(c.Do, func() {
		for _, v := range values {
			a.hazard(name, v)
			a.set(name, v)
			a.group(c.Do, stdin, piped)
		}
		a.unknown(name)
	}, stdin, piped)
}
