package permit

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// inner goes through what is run inside a word or an expression. It reports whether
// anything is, and whether the word is a pipe.
func (a *analysis) inner(n syntax.Node) (ran, pipe bool) {
	syntax.Walk(n, func(node syntax.Node) bool {
		switch p := node.(type) {
		case *syntax.CmdSubst:
			a.substitute(p.Stmts)
			ran = true
			return false // it went through what is inside
		case *syntax.ProcSubst:
			a.substitute(p.Stmts)
			ran = true
			return false
		case *syntax.BinaryArithm:
			if word, ok := p.X.(*syntax.Word); ok && p.Op.String() != "==" && strings.HasSuffix(p.Op.String(), "=") {
				delete(a.vars, word.Lit())
			}
		case *syntax.UnaryArithm:
			if word, ok := p.X.(*syntax.Word); ok {
				delete(a.vars, word.Lit())
			}
		case *syntax.ParamExp:
			if p.Exp != nil && p.Param != nil && strings.Contains(p.Exp.Op.String(), "=") {
				delete(a.vars, p.Param.Value)
			}
			if p.Exp != nil && p.Exp.Op == syntax.OtherParamOps {
				a.doubt(a.written(p), "the value is expanded again, which may run commands")
			}
		}
		return true
	})
	return ran, ran && isPipe(n)
}

// isPipe reports whether a word is a process substitution and nothing else.
func isPipe(n syntax.Node) bool {
	w, ok := n.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		return false
	}
	_, ok = w.Parts[0].(*syntax.ProcSubst)
	return ok
}

// substitute goes through the commands of a substitution, in a shell of its own.
func (a *analysis) substitute(stmts []*syntax.Stmt) {
	a.depth++
	if a.depth > deepest {
		a.doubt("a substitution", "it is nested too deeply to be told")
	} else {
		a.apart(func() { a.statements(stmts) })
	}
	a.depth--
}

// knownOutput is what the one substitution that a word consists of writes, where
// that can be told: $(pwd), $(echo text).
func (a *analysis) knownOutput(w *syntax.Word) (string, bool) {
	parts := w.Parts
	if len(parts) == 1 {
		if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = quoted.Parts
		}
	}
	if len(parts) != 1 {
		return "", false
	}
	sub, ok := parts[0].(*syntax.CmdSubst)
	if !ok || len(sub.Stmts) != 1 {
		return "", false
	}
	out := a.output(sub.Stmts[0])
	text := strings.TrimRight(out.text, "\n")
	return text, out.known && !strings.ContainsAny(text, " \t\n*?[")
}

// output is what a statement writes, where that can be told.
func (a *analysis) output(s *syntax.Stmt) arg {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || s.Negated || s.Background {
		return arg{text: a.written(s)}
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		text, pattern, ok := plainWord(w)
		if !ok || pattern || strings.Contains(text, "{") || strings.HasPrefix(text, "~") {
			v := a.quietly(w)
			if !v.known {
				return arg{text: a.written(s)}
			}
			text = v.text
		}
		words[i] = text
	}
	switch {
	case len(s.Redirs) == 1 && words[0] == "cat" && len(words) == 1 && s.Redirs[0].Hdoc != nil:
		if text, _, ok := plainWord(s.Redirs[0].Hdoc); ok {
			return literal(text)
		}
	case len(s.Redirs) > 0:
	case words[0] == "pwd" && len(words) == 1 && len(a.dirs) == 1:
		return literal(a.dirs[0] + "\n")
	case words[0] == "echo" && (len(words) < 2 || !strings.HasPrefix(words[1], "-")):
		text := strings.Join(words[1:], " ")
		if !strings.Contains(text, `\`) { // some shells take escapes
			return literal(text + "\n")
		}
	case words[0] == "printf" && len(words) == 2 && !strings.ContainsAny(words[1], `\%`):
		return literal(words[1])
	case words[0] == "printf" && len(words) == 3 && (words[1] == "%s" || words[1] == `%s\n`):
		return literal(words[2])
	}
	return arg{text: a.written(s)}
}

// quietly resolves a word of variables without going through what it runs.
func (a *analysis) quietly(w *syntax.Word) arg {
	for n := range syntax.Preorder(w) {
		switch n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return arg{}
		}
	}
	if !a.certain(w) {
		return arg{}
	}
	env := &known{state: &a.state, floor: a.floor}
	text, err := expand.Literal(&expand.Config{Env: env}, w)
	return arg{text: text, known: err == nil && !env.missed}
}

// written is the text of a node as it was typed.
func (a *analysis) written(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(a.src) || from >= to {
		return "?"
	}
	return a.src[from:to]
}
