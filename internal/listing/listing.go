// Package listing renders the lists of skills and subagents that tool descriptions contain.
// A list has a budget, because every request to the model contains it.
package listing

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// CharactersPerToken converts a budget: each token counts as four characters.
	CharactersPerToken = 4
	// Least is the smallest default budget, in tokens.
	Least = 2000
	// share is the reciprocal of the part of a context window that a list may use by
	// default: 2 %.
	share = 50
	// longest limits one description in a list, in characters, so that it does not use the
	// space of many others.
	longest = 1024
)

// Budget returns the default budget of a list in tokens. window is the context window of
// the model in tokens, or 0 if it is unknown.
func Budget(window int) int { return max(Least, window/share) }

// Entry is an entry of a list.
type Entry struct{ Name, Description string }

// LeftOut counts what a list leaves out.
type LeftOut struct {
	Total        int // all entries
	Names        int // entries that are not in the list
	Descriptions int // entries in the list whose description is left out
}

// Render lists entries of a kind, such as "skill", in the given order. budget is in tokens.
// The list first gets the names of all entries, and then descriptions while they fit. If
// not all names fit, a comment says how many are left out. The frame around the list is
// always written, even if the budget is too small for it.
func Render(kind string, entries []Entry, budget int) (string, LeftOut) {
	l := list{kind: kind, left: LeftOut{Total: len(entries)}}
	opened, closed := "<available_"+kind+"s>\n", "</available_"+kind+"s>"
	l.room = budget*CharactersPerToken - len(opened) - len(closed)
	names, total := make([]string, len(entries)), 0
	for i, e := range entries {
		names[i] = html.EscapeString(e.Name)
		total += l.line(names[i])
	}
	l.b.WriteString(opened)
	if total > l.room {
		l.names(names, total)
	} else {
		l.room -= total
		l.entries(names, entries)
	}
	l.b.WriteString(closed)
	return l.b.String(), l.left
}

// list is the state while a list is written.
type list struct {
	kind string
	room int // how many characters are left
	left LeftOut
	b    strings.Builder
}

// line returns the length of a line that has only a name.
func (l *list) line(escaped string) int {
	return utf8.RuneCountInString(escaped) + len(l.kind) + len("< name=\"\" />\n")
}

// name writes a line that has only a name.
func (l *list) name(escaped string) { l.b.WriteString("<" + l.kind + ` name="` + escaped + "\" />\n") }

// entries writes all names, with descriptions while they fit.
func (l *list) entries(names []string, entries []Entry) {
	// The number of extra characters if <skill name="x" /> becomes <skill
	// name="x">text</skill>.
	tags := len(">") + len("</>") + len(l.kind) - len(" />")
	fits := true
	for i, e := range entries {
		if fits {
			text := described(e.Description)
			if more := utf8.RuneCountInString(text) + tags; text != "" && more <= l.room {
				l.room -= more
				l.b.WriteString("<" + l.kind + ` name="` + names[i] + `">` + text + "</" + l.kind + ">\n")
				continue
			}
			fits = text == ""
		}
		if !fits && strings.TrimSpace(e.Description) != "" {
			l.left.Descriptions++
		}
		l.name(names[i])
	}
}

// names writes as many names as fit, and a comment that says how many are left out. total
// is the length of all lines.
func (l *list) names(names []string, total int) {
	n := len(names)
	for n > 0 && total+l.omittedLength(len(names)-n) > l.room {
		n--
		total -= l.line(names[n])
	}
	for _, name := range names[:n] {
		l.name(name)
	}
	if l.left.Names = len(names) - n; l.left.Names > 0 {
		fmt.Fprintf(&l.b, "<!-- %d more %ss omitted -->\n", l.left.Names, l.kind)
	}
}

// omittedLength returns the length of the comment for n entries. It must be fast, because
// names calls it once per name.
func (l *list) omittedLength(n int) int {
	if n == 0 {
		return 0
	}
	length := len("<!--  more s omitted -->\n") + len(l.kind)
	for ; n > 0; n /= 10 {
		length++
	}
	return length
}

// described returns a description for a list: on one line, escaped, and shortened.
func described(text string) string {
	n := 0
	for i := range text {
		if n == longest {
			text = text[:i] + "…"
			break
		}
		n++
	}
	return html.EscapeString(strings.Join(strings.Fields(text), " "))
}

// Message returns a note for the user about what a list leaves out, or "". budget is the
// budget of that list.
func (l LeftOut) Message(kind string, budget int) string {
	because := fmt.Sprintf("the list may have at most %d tokens. To change this, set limits.listing_tokens, or Options.Budget in Go", budget)
	switch {
	case l.Names > 0:
		return fmt.Sprintf("the model does not see %d of %s: %s", l.Names, counted(l.Total, kind), because)
	case l.Descriptions > 0:
		return fmt.Sprintf("the model sees %d of %s without a description: %s", l.Descriptions, counted(l.Total, kind), because)
	default:
		return ""
	}
}

func counted(n int, kind string) string {
	if n == 1 {
		return "1 " + kind
	}
	return strconv.Itoa(n) + " " + kind + "s"
}
