package permit

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// inner analyses the commands inside a word or an expression. It reports whether there
// are any, and whether the word is a process substitution.
func (a *analysis) inner(n syntax.Node) (ran, pipe bool) {
	syntax.Walk(n, func(node syntax.Node) bool {
		switch p := node.(type) {
		case *syntax.CmdSubst:
			a.substitute(p.Stmts)
			ran = true
			return false // substitute has analysed the inner commands
		case *syntax.ProcSubst:
			a.substitute(p.Stmts)
			ran = true
			return false
		default:
			a.evaluated(node)
		}
		return true
	})
	return ran, ran && isPipe(n)
}

// evaluated analyses a part of a word or an expression that the shell evaluates as
// arithmetic, or that sets a variable.
func (a *analysis) evaluated(node syntax.Node) {
	switch p := node.(type) {
	case *syntax.ArithmExp:
		a.compute(p.X)
	case *syntax.ArithmCmd:
		a.compute(p.X)
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{p.Init, p.Cond, p.Post} {
			a.compute(x)
		}
	case *syntax.LetClause:
		a.let(p)
	case *syntax.BinaryArithm:
		if op := p.Op.String(); strings.HasSuffix(op, "=") && op != "==" && op != "!=" && op != "<=" && op != ">=" {
			a.computed(p.X)
		}
	case *syntax.UnaryArithm:
		if p.Op == syntax.Inc || p.Op == syntax.Dec {
			a.computed(p.X)
		}
	case *syntax.BinaryTest:
		a.compares(p)
	case *syntax.UnaryTest:
		if w, ok := p.X.(*syntax.Word); ok && (p.Op == syntax.TsVarSet || p.Op == syntax.TsRefVar) {
			if v := a.quietly(w); !v.known || !a.isVariable(v.text) {
				a.doubt(a.written(p), "the shell evaluates the index of a variable, which may run commands")
			}
		}
	case *syntax.ParamExp:
		a.expanded(p)
	}
}

// let analyses a let command. Its expressions may be quoted.
func (a *analysis) let(c *syntax.LetClause) {
	for _, x := range c.Exprs {
		a.compute(x)
		w, ok := x.(*syntax.Word)
		if !ok {
			continue
		}
		for n := range syntax.Preorder(w) {
			text := ""
			switch n := n.(type) {
			case *syntax.SglQuoted:
				text = n.Value
			case *syntax.Lit:
				text = n.Value
			}
			for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return !isName("x" + string(r)) }) {
				a.unknown(name) // the expression may set this variable
			}
		}
	}
}

// compares judges a comparison of numbers in [[. The shell evaluates both sides as
// arithmetic.
func (a *analysis) compares(t *syntax.BinaryTest) {
	if !oneOf(t.Op.String(), "-eq -ne -le -ge -lt -gt") {
		return
	}
	for _, x := range []syntax.TestExpr{t.X, t.Y} {
		if w, ok := x.(*syntax.Word); !ok || !a.counts(w) {
			a.doubt(a.written(x), "the shell evaluates this as arithmetic, which can run commands if it is not a number")
		}
	}
}

// isVariable reports whether a text is the name of a variable, or of an array element
// with a number as its index.
func (a *analysis) isVariable(text string) bool {
	name, index, indexed := strings.Cut(text, "[")
	index = strings.TrimSuffix(index, "]")
	return (isName(name) || isNumber(name)) && (!indexed || index == "@" || index == "*" || a.expression(index))
}

func (a *analysis) expanded(p *syntax.ParamExp) {
	if p.Param == nil {
		return
	}
	name := p.Param.Value
	all := false
	if w, ok := p.Index.(*syntax.Word); ok {
		all = w.Lit() == "@" || w.Lit() == "*"
	}
	if p.Index != nil {
		a.index(name, p.Index)
	}
	if p.Slice != nil {
		a.compute(p.Slice.Offset)
		a.compute(p.Slice.Length)
	}
	sets := p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull)
	if p.Excl && p.Names == 0 && !all {
		value, ok := a.vars.get(name)
		if ok && !a.isVariable(value) || !ok && !a.holdsNumber(name) {
			a.doubt(a.written(p), "cannot determine which variable this is: its index may run commands")
		}
		if sets {
			a.loseVariables()
		}
	}
	switch {
	case p.Exp == nil:
	case sets:
		counts := a.numeric(p.Exp.Word) && a.holdsNumber(name)
		if p.Exp.Word != nil {
			a.hazard(name, a.quietly(p.Exp.Word))
		}
		if a.markDirty(name); counts {
			a.count(name)
		}
	case p.Exp.Op == syntax.OtherParamOps:
		a.doubt(a.written(p), "the shell expands the value again, which may run commands")
	}
}

// isPipe reports whether a word is only a process substitution, such as <(ls).
func isPipe(n syntax.Node) bool {
	w, ok := n.(*syntax.Word)
	if !ok || len(w.Parts) != 1 {
		return false
	}
	_, ok = w.Parts[0].(*syntax.ProcSubst)
	return ok
}

// substitute analyses the commands of a substitution in a subshell.
func (a *analysis) substitute(stmts []*syntax.Stmt) {
	a.depth++
	if a.depth > deepest {
		a.doubt("a substitution", "it is nested too deeply to check")
	} else {
		a.apart(func() { a.statements(stmts) })
	}
	a.depth--
}

// knownOutput returns the output of a word that is a single substitution, such as $(pwd)
// or $(echo text). ok is false if the output is unknown.
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

// output returns the output of a statement if the analysis can determine it. Otherwise it
// returns an unknown word.
func (a *analysis) output(s *syntax.Stmt) arg {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || s.Negated || s.Background {
		return arg{text: a.written(s)}
	}
	var words []string
	for _, w := range call.Args {
		text, pattern, ok := plainWord(w)
		if !ok || pattern || strings.Contains(text, "{") || strings.HasPrefix(text, "~") || laterTilde(w, false) {
			fields, ok := a.quietFields(w)
			if !ok {
				return arg{text: a.written(s)}
			}
			words = append(words, fields...)
			continue
		}
		words = append(words, text)
	}
	if len(words) == 0 || a.isFunction(words[0]) {
		return arg{text: a.written(s)}
	}
	switch {
	case len(s.Redirs) == 1 && words[0] == "cat" && len(words) == 1 && s.Redirs[0].Hdoc != nil:
		if text, _, ok := plainWord(s.Redirs[0].Hdoc); ok {
			return literal(text)
		}
	case len(s.Redirs) > 0:
	case slices.Equal(words, []string{"git", "rev-parse", "--show-toplevel"}):
		if top, ok := a.topLevel(); ok {
			return literal(top + "\n")
		}
	case words[0] == "pwd" && len(words) == 1 && len(a.dirs) == 1:
		return literal(a.dirs[0] + "\n")
	case words[0] == "echo" && (len(words) < 2 || !strings.HasPrefix(words[1], "-")):
		text := strings.Join(words[1:], " ")
		if !strings.Contains(text, `\`) { // some shells interpret escapes
			return literal(text + "\n")
		}
	case words[0] == "find":
		if dir := searchedBy(words[1:]); dir != "" {
			return arg{text: dir, tree: true}
		}
	case words[0] == "printf" && len(words) == 2 && !strings.ContainsAny(words[1], `\%`):
		return literal(words[1])
	case words[0] == "printf" && len(words) == 3 && (words[1] == "%s" || words[1] == `%s\n`):
		return literal(words[2])
	}
	return arg{text: a.written(s)}
}

// searchedBy returns the directory that contains all files which a find command with
// these words prints. It returns "" if there is none.
func searchedBy(words []string) string {
	dir, starts := ".", true
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "-") || oneOf(w, "( !"):
			starts = false
			if strings.Contains(w, "printf") || strings.HasPrefix(w, "-exec") || strings.HasPrefix(w, "-ok") || strings.HasPrefix(w, "-files0") || w == "-f" {
				return "" // find prints something else
			}
		case starts && i == 0:
			dir = w
		case starts:
			return ""
		}
	}
	return dir
}

// topLevel returns the top directory of the repository, as git finds it from the current
// directory. The directory must be in the project.
func (a *analysis) topLevel() (string, bool) {
	if len(a.dirs) != 1 || a.lost != "" {
		return "", false
	}
	s := a.floor.locate(a.dirs[0])
	for dir := s.path; s.inside && s.err == nil; dir = path.Dir(dir) {
		if _, err := os.Lstat(filepath.FromSlash(dir + "/.git")); err == nil {
			return filepath.FromSlash(dir), true
		}
		if dir == a.floor.project.path {
			break
		}
	}
	return "", false
}

// quietly resolves a word that may contain variables. It does not analyse commands in the
// word, and returns an unknown word if there are any.
func (a *analysis) quietly(w *syntax.Word) arg {
	if !a.quiet(w) {
		return arg{}
	}
	env := &known{state: &a.state, floor: a.floor}
	text, err := expand.Literal(&expand.Config{Env: env}, w)
	return arg{text: text, known: err == nil && !env.missed}
}

// quietFields is like quietly, for a word that may become several. The value of a pattern
// is unknown, because the shell replaces the pattern with file names.
func (a *analysis) quietFields(w *syntax.Word) ([]string, bool) {
	if _, pattern, ok := plainWord(w); !a.quiet(w) || ok && pattern || braceWords(w) != nil {
		return nil, false
	}
	env := &known{state: &a.state, floor: a.floor}
	fields, err := expand.Fields(&expand.Config{Env: env}, w)
	for _, text := range fields {
		if strings.ContainsAny(text, "*?[") {
			return nil, false
		}
	}
	return fields, err == nil && !env.missed
}

// quiet reports whether a word runs no command and depends only on the values of
// variables.
func (a *analysis) quiet(w *syntax.Word) bool {
	if w != nil && (laterTilde(w, false) || laterTilde(w, true)) {
		return false
	}
	for n := range syntax.Preorder(w) {
		switch p := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			if p.Exp != nil && (p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull) {
				return false
			}
		}
	}
	return a.certain(w)
}

// written returns the source text of a node.
func (a *analysis) written(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(a.src) || from >= to {
		return "?"
	}
	return a.src[from:to]
}
