package toolbox

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxNeedles is how many needles an expression may have.
const maxNeedles = 16

// needle is a plain text that a match must contain. Searching for a plain text is many
// times faster than matching an expression.
type needle struct {
	text []byte
	fold bool // ignore case; the text is in lower case
}

// needlesOf returns needles for an expression. Every match contains at least one of them.
// It returns nil if none can be found.
func needlesOf(pattern string) []needle {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return needlesIn(re)
}

func needlesIn(re *syntax.Regexp) []needle {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNeedle(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture, syntax.OpPlus:
		return needlesIn(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needlesIn(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range re.Sub {
			if n := needlesIn(sub); shortestOf(n) > shortestOf(best) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range re.Sub {
			n := needlesIn(sub)
			if len(n) == 0 || len(all)+len(n) > maxNeedles {
				return nil
			}
			all = append(all, n...)
		}
		return all
	default:
	}
	return nil
}

// literalNeedle returns the longest part of a text that has only one form in bytes, apart
// from ASCII case. If case is ignored, k and s do not qualify, because they also match
// characters outside ASCII. U+FFFD does not qualify either, because it stands for invalid
// bytes.
func literalNeedle(text []rune, fold bool) []needle {
	best := ""
	for _, part := range strings.FieldsFunc(string(text), func(r rune) bool {
		return r == utf8.RuneError || fold && (r >= utf8.RuneSelf || strings.ContainsRune("kKsS", r))
	}) {
		if len(part) > len(best) {
			best = part
		}
	}
	if best == "" {
		return nil
	}
	if fold {
		best = strings.ToLower(best)
	}
	return []needle{{[]byte(best), fold}}
}

// shortestOf returns the length of the shortest needle. Longer needles select fewer
// lines.
func shortestOf(needles []needle) int {
	if len(needles) == 0 {
		return 0
	}
	least := len(needles[0].text)
	for _, n := range needles {
		least = min(least, len(n.text))
	}
	return least
}

// index returns the first position of the needle in data, or -1.
func (n needle) index(data []byte) int {
	if !n.fold {
		return bytes.Index(data, n.text)
	}
	low := n.text[0]
	high := low
	if 'a' <= low && low <= 'z' {
		high -= 'a' - 'A'
	}
	nextLow, nextHigh := -1, -1 // the next positions of low and high; -1 means unknown, len(data) means none
	for at := 0; at+len(n.text) <= len(data); at++ {
		if nextLow < at {
			nextLow = indexByte(data, at, low)
		}
		if nextHigh < at {
			nextHigh = indexByte(data, at, high)
		}
		at = min(nextLow, nextHigh)
		if at+len(n.text) <= len(data) && equalFold(data[at:at+len(n.text)], n.text) {
			return at
		}
	}
	return -1
}

func indexByte(data []byte, from int, c byte) int {
	if i := bytes.IndexByte(data[from:], c); i >= 0 {
		return from + i
	}
	return len(data)
}

// equalFold compares data with a lower-case text, ignoring the case of ASCII letters.
func equalFold(data, lower []byte) bool {
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// haystack searches data for several needles. It remembers the next position of each
// needle, so that data is not searched again and again for a rare needle.
type haystack struct {
	needles []needle
	next    []int // for each needle, its next position at or after the last requested one
}

func newHaystack(needles []needle) *haystack {
	h := &haystack{needles: needles, next: make([]int, len(needles))}
	h.forget()
	return h
}

// forget must be called when the data has changed.
func (h *haystack) forget() {
	for i := range h.next {
		h.next[i] = -1
	}
}

// from returns the first position of any needle, starting at the given position, or -1.
func (h *haystack) from(data []byte, at int) int {
	first := len(data)
	for i, n := range h.needles {
		if h.next[i] < at {
			h.next[i] = len(data)
			if j := n.index(data[at:]); j >= 0 {
				h.next[i] = at + j
			}
		}
		first = min(first, h.next[i])
	}
	if first == len(data) {
		return -1
	}
	return first
}
