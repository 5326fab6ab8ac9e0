package permit

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/belay-run/belay/internal/lazyregexp"
)

// The parser reads some scripts differently from bash. Then bash would run something
// other than the analysis sees. Such scripts are rare, so the whole script counts as
// unknown.

// disagreement returns why bash may read a script differently from the parser. It returns
// "" for nearly all scripts. A cheap search of the script comes before each check.
func disagreement(script string, file *syntax.File) string {
	if strings.Contains(script, "\r") {
		return "the command has a carriage return, which shells read in different ways: end lines with a newline only"
	}
	continued := strings.Contains(script, "\\\n")
	if continued && strings.Contains(script, "#") && commentContinues(script, file) {
		return "a line with a comment ends in a backslash, which shells read in different ways: remove the backslash"
	}
	if strings.Contains(script, "<<") && unclearHeredoc(script, file) {
		return "shells disagree about where a here-document ends: quote its end word, as in <<'EOF', and use that word nowhere else"
	}
	if strings.Contains(script, "${") && strings.Contains(script, "'") && quotedDefault(file) {
		return "single quotes inside ${...} do not protect their contents: use a variable"
	}
	if strings.Contains(script, "]}") && strings.ContainsAny(script, "<>") && indexedDescriptor(script, file) {
		return "the shell evaluates the index of a variable in a redirection, which may run commands: use a plain name"
	}
	return ""
}

// commentContinues reports whether a comment may end with a backslash. Bash ends the
// comment with the line, but for the parser the command continues on the next line.
func commentContinues(script string, file *syntax.File) bool {
	var marks []int // where a comment may begin
	start := 0
	for line := range strings.Lines(script) {
		if strings.HasSuffix(line, "\\\n") {
			for i := range len(line) {
				if line[i] == '#' && (i == 0 || strings.IndexByte(" \t;&|()<>`", line[i-1]) >= 0) {
					marks = append(marks, start+i)
				}
			}
		}
		start += len(line)
	}
	if len(marks) == 0 {
		return false
	}
	texts := map[int]bool{} // the # characters that are inside a string
	for n := range syntax.Preorder(file) {
		switch n.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
			for _, at := range marks {
				if int(n.Pos().Offset()) <= at && at < int(n.End().Offset()) {
					texts[at] = true
				}
			}
		}
	}
	return len(texts) < len(marks)
}

// plainEnd matches an end word of a here-document that all shells read in the same way.
var plainEnd = lazyregexp.New(`^(?:\\?[\w.!+%@:,/-]+|'[^'\\\n]*'|"[^"\\$\x60\n]*")$`)

// unclearHeredoc reports whether bash may end a here-document at another line than the
// parser. Bash joins lines that end with a backslash before it compares them with the end
// word. It also searches for the end word inside expansions, and accepts "EOF)" as the
// end inside a substitution.
func unclearHeredoc(script string, file *syntax.File) bool {
	for n := range syntax.Preorder(file) {
		r, ok := n.(*syntax.Redirect)
		if !ok || r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc || r.Word == nil {
			continue
		}
		from, to := int(r.Word.Pos().Offset()), int(r.Word.End().Offset())
		if from < 0 || to > len(script) || from >= to || !plainEnd.MatchString(script[from:to]) {
			return true
		}
		if r.Hdoc == nil {
			continue
		}
		end := int(r.Hdoc.End().Offset())
		if end > len(script) || end < to {
			return true
		}
		body := script[to:end]
		quoted := strings.ContainsAny(script[from:to], `'"\`)
		if !quoted && strings.Contains(body, "\\\n") || endsWithin(body, strings.Trim(script[from:to], `'"\`), r.Op == syntax.DashHdoc) {
			return true
		}
	}
	return false
}

// endsWithin reports whether bash may end a here-document at one of its lines. The first
// line of body is the rest of the command. At the last line, every shell ends the
// here-document.
func endsWithin(body, stop string, tabs bool) bool {
	lines := strings.Split(body, "\n")
	for i := 1; i < len(lines)-1; i++ {
		line := lines[i]
		if tabs {
			line = strings.TrimLeft(line, "\t")
		}
		if rest, ok := strings.CutPrefix(line, stop); ok && (rest == "" || strings.ContainsAny(rest, ")`")) {
			return true
		}
	}
	return false
}

// quotedDefault reports whether an expansion such as ${x:-'...'} has single quotes around
// something that bash expands. Bash treats single quotes as ordinary characters inside
// double quotes, here-documents and arithmetic.
func quotedDefault(file *syntax.File) bool {
	for n := range syntax.Preorder(file) {
		switch n := n.(type) {
		case *syntax.Redirect:
			if n.Hdoc != nil && quotesIn(n.Hdoc, true) {
				return true
			}
		case *syntax.ParamExp:
			if quotesIn(n, false) {
				return true
			}
		}
	}
	return false
}

// quotesIn reports whether the word of an expansion has single quotes that do not protect
// their contents. If all is not set, it skips operators that cut the value, because there
// single quotes do protect their contents.
func quotesIn(n syntax.Node, all bool) bool {
	for n := range syntax.Preorder(n) {
		p, ok := n.(*syntax.ParamExp)
		if !ok || p.Exp == nil || p.Exp.Word == nil || !all && strings.ContainsAny(p.Exp.Op.String(), "#%^,") {
			continue
		}
		for n := range syntax.Preorder(p.Exp.Word) {
			if q, ok := n.(*syntax.SglQuoted); ok && strings.ContainsAny(q.Value, "$`\\\"{}") {
				return true
			}
		}
	}
	return false
}

// indexedDescriptor reports whether a redirection stores its descriptor in an array
// element, as in {a[i]}<file.
func indexedDescriptor(script string, file *syntax.File) bool {
	for n := range syntax.Preorder(file) {
		r, ok := n.(*syntax.Redirect)
		if !ok {
			continue
		}
		if r.N != nil && strings.Contains(r.N.Value, "[") {
			return true
		}
		at := int(r.OpPos.Offset())
		if at > len(script) {
			return true
		}
		if before := script[:at]; strings.HasSuffix(before, "\\\n") && strings.HasSuffix(strings.ReplaceAll(before, "\\\n", ""), "]}") {
			return true
		}
	}
	return false
}

// escapes matches escapes between $' and '.
var escapes = lazyregexp.New(`(?s)\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.|$)`)

// plainEscapes reports whether the parser and bash read all escapes between $' and ' in
// the same way. For bash, a zero byte ends the text.
func plainEscapes(text string) bool {
	for _, e := range escapes.FindAllString(text, -1) {
		e = e[1:]
		code, err := strconv.ParseUint(e, 8, 16)
		if hex, ok := strings.CutPrefix(e, "x"); ok {
			code, err = strconv.ParseUint(hex, 16, 16)
		}
		if err == nil && (code == 0 || code > 0xff) || err != nil && !oneOf(e, `n t r a b e E f v \ ' " ?`) {
			return false
		}
	}
	return true
}

// computedAlike reports whether the expand library and bash compute the same value for a
// part of a word.
func (a *analysis) computedAlike(n syntax.Node) bool {
	switch p := n.(type) {
	case *syntax.SglQuoted:
		return !p.Dollar || !strings.Contains(p.Value, `\`) || plainEscapes(p.Value)
	case *syntax.ParamExp:
		if p.Param == nil || plainParam(p) {
			return true
		}
		if !a.holdsASCII(p.Param.Value) { // some locales count bytes, others characters
			return false
		}
		return (p.Repl == nil || plainReplacement(p)) && (p.Exp == nil || !hasSingleQuotes(p.Exp.Word))
	default:
		return true
	}
}

// plainReplacement reports whether ${x/a/b} replaces plain text with plain text. The
// expand library does not support anchored patterns and &.
func plainReplacement(p *syntax.ParamExp) bool {
	from, to := p.Repl.Orig, p.Repl.With
	return isName(p.Param.Value) && from != nil && plainText.MatchString(from.Lit()) && (to == nil || len(to.Parts) == 0 || plainText.MatchString(to.Lit()))
}

var plainText = lazyregexp.New(`^[\w.,:+@-]+$`)

func hasSingleQuotes(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	for n := range syntax.Preorder(w) {
		if _, ok := n.(*syntax.SglQuoted); ok {
			return true
		}
	}
	return false
}

// holdsASCII reports whether the value of a variable has only ASCII characters. It
// returns true for an unknown value.
func (a *analysis) holdsASCII(name string) bool {
	value, _ := a.vars.get(name)
	if !isName(name) {
		value = strings.Join(a.params, "")
	}
	for i := range len(value) {
		if value[i] >= 0x80 {
			return false
		}
	}
	return true
}

// laterTilde reports whether bash expands a ~ that is not at the start of the word: after
// the = of name=~, or after the colon of name=a:~. assigned says that the word is the
// value of an assignment.
func laterTilde(w *syntax.Word, assigned bool) bool {
	head, named := "", assigned
	for i, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			continue
		}
		if !named {
			head += lit.Value
			name, _, equals := strings.Cut(head, "=")
			name, _, _ = strings.Cut(strings.TrimSuffix(name, "+"), "[")
			if named = equals && isName(name); !named {
				continue
			}
		}
		if strings.Contains(lit.Value, ":~") || !assigned && strings.Contains(lit.Value, "=~") || i > 0 && strings.HasPrefix(lit.Value, "~") {
			return true
		}
	}
	return false
}

// isOneWord reports whether a word certainly stays exactly one word after expansion.
func isOneWord(w *syntax.Word) bool {
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, "*?[{") {
				return false
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				v, ok := inner.(*syntax.ParamExp)
				if !ok {
					continue
				}
				if v.Param == nil || v.Param.Value == "@" || v.Index != nil || v.Excl || v.Names != 0 {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
