package permit

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// plainWord returns the value of a word that consists only of text and quotes.
func plainWord(w *syntax.Word) (text string, pattern, ok bool) {
	if len(w.Parts) == 1 {
		if text, ok := onePart(w.Parts[0]); ok { // most words need no copy
			return text, false, true
		}
	}
	var b strings.Builder
	if len(w.Parts) > 0 {
		b.Grow(int(w.End().Offset() - w.Pos().Offset()))
	}
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			pattern = unescape(&b, p.Value) || pattern
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false, false // package expand handles the escapes
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false, false
			}
			for _, inner := range p.Parts {
				lit, isLit := inner.(*syntax.Lit)
				if !isLit {
					return "", false, false
				}
				unescapeQuoted(&b, lit.Value)
			}
		case *syntax.ExtGlob:
			if !isPlainExtGlob(p.Pattern.Value) {
				return "", false, false
			}
			b.WriteByte('*') // * matches at least the same names
			pattern = true
		default:
			return "", false, false
		}
	}
	return b.String(), pattern, true
}

// isPlainExtGlob reports whether the text in the parentheses of !(a|b) and similar
// patterns matches only names in one directory that do not begin with a dot. Then *
// matches at least the same names.
func isPlainExtGlob(pattern string) bool {
	return !strings.ContainsAny(pattern, "/\\'\"$`") && !strings.HasPrefix(pattern, ".") && !strings.Contains(pattern, "|.") && !strings.Contains(pattern, "(.")
}

// onePart returns the value of a part that is literal.
func onePart(part syntax.WordPart) (text string, ok bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return p.Value, !strings.ContainsAny(p.Value, `\*?[`)
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		if len(p.Parts) != 1 || p.Dollar {
			return "", false
		}
		lit, isLit := p.Parts[0].(*syntax.Lit)
		if !isLit {
			return "", false
		}
		return lit.Value, !strings.Contains(lit.Value, `\`)
	default:
		return "", false
	}
}

// unescape removes the escapes of unquoted text. It reports whether the text is a
// pattern.
func unescape(b *strings.Builder, text string) (pattern bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '\\':
			if i++; i < len(text) && text[i] != '\n' {
				b.WriteByte(text[i])
			}
		case '*', '?':
			pattern = true
			b.WriteByte(c)
		case '[':
			pattern = pattern || strings.Contains(text[i:], "]")
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return pattern
}

// unescapeQuoted removes the escapes of text in double quotes.
func unescapeQuoted(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch text[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
}

// startsTilde reports whether a word begins with a ~ that is not quoted.
func startsTilde(w *syntax.Word) bool {
	lit, ok := w.Parts[0].(*syntax.Lit)
	return ok && strings.HasPrefix(lit.Value, "~")
}

// mostBraces is how many words a brace expansion may produce.
const mostBraces = 64

// braceWords returns the words of a brace expansion, or nil if there is none. If there
// are too many words, it returns more than mostBraces nil words.
func braceWords(w *syntax.Word) []*syntax.Word {
	has := false
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok && strings.Contains(lit.Value, "{") {
			has = true
		}
	}
	if !has {
		return nil
	}
	split := *w
	split.Parts = append([]syntax.WordPart(nil), w.Parts...)
	if !syntax.SplitBraces(&split) {
		return nil
	}
	if countBraces(&split) > mostBraces {
		return make([]*syntax.Word, mostBraces+1)
	}
	var words []*syntax.Word
	for word, err := range expand.BracesSeq(nil, &split) {
		if err != nil {
			return make([]*syntax.Word, mostBraces+1)
		}
		words = append(words, word)
	}
	return words
}

// countBraces returns how many words a brace expansion produces. If there are too many,
// it returns a number above mostBraces.
func countBraces(w *syntax.Word) int {
	n := 1
	for _, part := range w.Parts {
		brace, ok := part.(*syntax.BraceExp)
		if !ok {
			continue
		}
		sum := 0
		if brace.Sequence {
			sum = countSequence(brace)
		} else {
			for _, e := range brace.Elems {
				sum += countBraces(e)
			}
		}
		if n *= max(sum, 1); n > mostBraces || n <= 0 {
			return mostBraces + 1
		}
	}
	return n
}

func countSequence(brace *syntax.BraceExp) int {
	if len(brace.Elems) < 2 {
		return mostBraces + 1
	}
	from, to := brace.Elems[0].Lit(), brace.Elems[1].Lit()
	x, err1 := strconv.ParseInt(from, 10, 32)
	y, err2 := strconv.ParseInt(to, 10, 32)
	if err1 != nil || err2 != nil {
		if len(from) != 1 || len(to) != 1 {
			return mostBraces + 1
		}
		x, y = int64(from[0]), int64(to[0])
	}
	return int(min(max(x-y, y-x)+1, mostBraces+1))
}
