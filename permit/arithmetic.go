package permit

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// In arithmetic, the shell evaluates the value of a variable as another expression. An
// array index in that expression may run a command: after x='a[$(id)]', $((x)) runs id.
// So every operand must be a number, or a variable that holds a number. A variable holds
// a number if the line sets it to a number, or does not set it.

// compute judges an arithmetic expression.
func (a *analysis) compute(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		if !a.counts(x) || !a.plainIndex(x) {
			a.doubt(a.written(x), "the shell evaluates this as arithmetic, which can run commands if it is not a number")
		}
	case *syntax.BinaryArithm:
		if word, ok := x.X.(*syntax.Word); x.Op != syntax.Assgn || !ok || !isName(word.Lit()) {
			a.compute(x.X)
		}
		a.compute(x.Y)
	case *syntax.UnaryArithm:
		a.compute(x.X)
	case *syntax.ParenArithm:
		a.compute(x.X)
	case nil:
	default:
		a.doubt(a.written(x), "Belay does not understand this construct")
	}
}

// plainIndex reports whether every array index in an expression is plain text or a
// number. In arithmetic, the shell expands an array index twice, so any other index may
// run commands.
func (a *analysis) plainIndex(w *syntax.Word) bool {
	for _, part := range w.Parts {
		p, ok := part.(*syntax.ParamExp)
		if !ok || p.Index == nil || p.Dollar.IsValid() {
			continue
		}
		if index, ok := p.Index.(*syntax.Word); ok && index.Lit() == "" && !a.numeric(index) {
			return false
		}
	}
	return true
}

// computed records that a variable holds a number, because an arithmetic expression sets
// it.
func (a *analysis) computed(x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && isName(word.Lit()) {
		a.hazard(word.Lit(), arg{text: "a number"})
		a.count(word.Lit())
	}
}

// index judges the index of an array element.
func (a *analysis) index(name string, x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok {
		switch text := word.Lit(); {
		case text == "@" || text == "*":
			return
		case text != "" && a.keyed.has(name):
			return
		}
	}
	if a.keyed.has(name) && !a.anyAlias {
		return // this is a key of an associative array, not an expression
	}
	a.compute(x)
}

// counts reports whether an operand is a number, or consists of names of variables that
// hold numbers.
func (a *analysis) counts(w *syntax.Word) bool { return w == nil || a.countsParts(w.Parts, false) }

// numeric reports whether a word is a number and nothing else.
func (a *analysis) numeric(w *syntax.Word) bool { return w == nil || a.countsParts(w.Parts, true) }

// countsParts does the work of counts, or of numeric if strict is set. Literal text next
// to an expansion must not join with it to form the name of a variable.
func (a *analysis) countsParts(parts []syntax.WordPart, strict bool) bool {
	for i, part := range parts {
		ok := false
		switch p := part.(type) {
		case *syntax.Lit:
			ok = a.countsText(p.Value, strict, i > 0, i < len(parts)-1)
		case *syntax.SglQuoted:
			ok = !p.Dollar && a.countsText(p.Value, strict, i > 0, i < len(parts)-1)
		case *syntax.DblQuoted:
			ok = len(parts) == 1 && a.countsParts(p.Parts, strict) || a.countsParts(p.Parts, true)
		case *syntax.ParamExp:
			ok = a.countsParam(p, strict)
		case *syntax.ArithmExp:
			ok = true // the result is always a number
		case *syntax.CmdSubst:
			ok = len(p.Stmts) == 1 && a.writesNumber(p.Stmts[0])
		}
		if !ok {
			return false
		}
	}
	return true
}

// countsText is counts for literal text. before and behind say whether other parts of the
// word precede or follow the text.
func (a *analysis) countsText(text string, strict, before, behind bool) bool {
	switch {
	case strings.Trim(text, "0123456789#") == "" || isInteger(text):
		return true
	case strict || !a.expression(text):
		return false
	default:
		return (!before || !isName("x"+text[:1])) && (!behind || !isName("x"+text[len(text)-1:]))
	}
}

// countsParam is counts for the expansion of a parameter.
func (a *analysis) countsParam(p *syntax.ParamExp, strict bool) bool {
	if p.Length {
		return true
	}
	if p.Param == nil || p.Excl || p.Names != 0 {
		return false
	}
	if e := p.Exp; e != nil && e.Word != nil &&
		(e.Op == syntax.OtherParamOps || strings.ContainsAny(e.Op.String(), "-=+") && !a.countsParts(e.Word.Parts, strict)) {
		return false
	}
	if p.Repl != nil && p.Repl.With != nil && !a.numeric(p.Repl.With) {
		return false
	}
	switch name := p.Param.Value; {
	case name == "#" || name == "?" || name == "$" || name == "!":
		return true
	case isNumber(name):
		env := &known{state: &a.state, floor: a.floor}
		value := env.Get(name)
		return !env.missed && isInteger(value.Str)
	default:
		return isName(name) && a.holdsNumber(name)
	}
}

// holdsNumber reports whether a variable holds a number: the line sets it to a number, or
// does not set it.
func (a *analysis) holdsNumber(name string) bool {
	if value, ok := a.vars.get(name); ok {
		return isInteger(value)
	}
	if a.anyAlias || a.allDirty || a.dirty.has(name) || a.patterns.has(name) {
		return false
	}
	return !isOwn(name) || countingNames.has(name)
}

// expression reports whether a text consists only of numbers, operators and variables
// that hold numbers.
func (a *analysis) expression(text string) bool {
	for i := 0; i < len(text); {
		c := text[i]
		if strings.IndexByte(" \t\n+-*/%<>=!&|^~?:,()", c) >= 0 {
			i++
			continue
		}
		end := i
		for end < len(text) && (isName("x"+text[end:end+1]) || text[end] == '#') {
			end++
		}
		token := text[i:end]
		switch {
		case token == "":
			return false
		case c >= '0' && c <= '9': // includes 0xff and 16#ff
		case !isName(token) || !a.holdsNumber(token):
			return false
		}
		i = end
	}
	return true
}

// evaluate judges a text that a command evaluates as arithmetic or as an array index.
func (c *invoked) evaluate(a arg) {
	if !a.known || a.pattern || !c.expression(a.text) {
		c.unknown("the expression may run commands")
	}
}

// isInteger reports whether a value is a number. An empty value counts as zero.
func isInteger(text string) bool {
	text = strings.TrimSpace(text)
	text = strings.TrimPrefix(strings.TrimPrefix(text, "-"), "+")
	return strings.Trim(text, "0123456789") == ""
}

// countingWords reports whether all words of a loop are numbers.
func (a *analysis) countingWords(words []*syntax.Word) bool {
	return !slices.ContainsFunc(words, func(w *syntax.Word) bool { return !a.numeric(w) })
}

// writesNumber reports whether a statement certainly prints a number and nothing else.
func (a *analysis) writesNumber(s *syntax.Stmt) bool {
	if out := a.output(s); out.known {
		return isInteger(out.text)
	}
	for {
		pipe, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		if pipe.Op != syntax.Pipe {
			return false
		}
		s = pipe.Y
	}
	words, ok := a.literals(s)
	if !ok {
		return false
	}
	name, args := words[0], words[1:]
	switch name {
	case "nproc":
		return true
	case "wc":
		return len(args) == 1 && oneOf(args[0], "-l -c -w -m -L --lines --bytes --words --chars")
	case "grep", "egrep", "fgrep":
		return len(args) >= 2 && len(args) <= 3 && strings.HasPrefix(args[0], "-") && strings.Contains(args[0], "c") && strings.Trim(args[0], "-civwxEFsha") == "" &&
			!strings.HasPrefix(args[1], "-") && !strings.HasPrefix(args[len(args)-1], "-")
	case "date":
		return len(args) == 1 && strings.HasPrefix(args[0], "+%") && strings.Trim(args[0], "+%sYmdHMSNjyuC") == "" && strings.Count(args[0], "+") == 1 &&
			strings.Count(args[0], "%") == len(strings.Trim(args[0], "+"))/2
	case "seq":
		return len(args) > 0 && !slices.ContainsFunc(args, func(w string) bool { return !isInteger(w) })
	case "id":
		return len(args) == 1 && oneOf(args[0], "-u -g")
	case "stat":
		return len(args) == 3 && (args[0] == "-c" && oneOf(args[1], "%s %Y %a %h %i") || args[0] == "-f" && oneOf(args[1], "%z %m"))
	case "tput":
		return len(args) == 1 && oneOf(args[0], "cols lines colors")
	case "git":
		return len(args) > 2 && args[0] == "rev-list" && args[1] == "--count" && !slices.ContainsFunc(args[2:], func(w string) bool { return strings.HasPrefix(w, "-") })
	default:
		return false
	}
}

// literals returns the words of a command if all of them are known. An argument may also
// be unknown if it is certainly one word and not an option: its text is then "?". ok is
// false for other commands, for functions, and if the output is redirected.
func (a *analysis) literals(s *syntax.Stmt) ([]string, bool) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 || s.Negated || s.Background || a.lost != "" {
		return nil, false
	}
	for _, r := range s.Redirs {
		if (r.N == nil || r.N.Value != "2") && r.Op != syntax.RdrIn && r.Op != syntax.WordHdoc && r.Op != syntax.Hdoc {
			return nil, false
		}
	}
	words := make([]string, 0, len(call.Args))
	for i, w := range call.Args {
		text, pattern, ok := plainWord(w)
		switch {
		case !ok && i > 0:
			v := a.quietly(w)
			if !v.known || strings.HasPrefix(v.text, "-") {
				text = "?" // an unknown operand, whose value does not matter
				if v.known || !safeOperand(w) {
					return nil, false
				}
			} else {
				text = v.text
			}
		case !ok || pattern && i == 0:
			return nil, false
		}
		words = append(words, text)
	}
	return words, !a.isFunction(words[0])
}

// safeOperand reports whether an unknown word is certainly one word and not an option.
func safeOperand(w *syntax.Word) bool {
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		if strings.HasPrefix(p.Value, "-") {
			return false
		}
	default:
		return false
	}
	for _, part := range w.Parts {
		switch part.(type) {
		case *syntax.Lit, *syntax.DblQuoted, *syntax.SglQuoted:
		default:
			return false
		}
	}
	return true
}
