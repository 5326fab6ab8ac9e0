package skill

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"
)

// The tools, and how long a list in the description of one is by default, in
// tokens.
const (
	ReadTool      = "read_skill"
	InvokeTool    = "invoke_skill"
	DefaultBudget = 2000
)

// charactersPerToken is how a budget is counted: by characters, which is what is
// known here, as if each token had four.
const charactersPerToken = 4

// The parts of a listing.
const (
	listingOpen  = "<available_skills>\n"
	listingClose = "</available_skills>"
)

// Listing renders skills for a model, in the order given, within a budget of tokens
// of four characters: names first for all, then descriptions, one after the other,
// while they fit. If not even the names fit, a comment says how many were left out.
// Hidden skills are not in it. What is not within any budget is the frame around an
// empty list.
func Listing(skills []*Skill, budget int) string {
	var names []string
	var shown []*Skill
	total := 0
	for _, s := range skills {
		if s.Hidden || s.UserOnly {
			continue
		}
		name := html.EscapeString(s.Name)
		names, shown = append(names, name), append(shown, s)
		total += nameLine(name)
	}
	room := budget*charactersPerToken - len(listingOpen) - len(listingClose)
	if total > room {
		return listingOfNames(names, total, room)
	}
	room -= total
	var b strings.Builder
	b.Grow(budget * charactersPerToken)
	b.WriteString(listingOpen)
	fits := true
	for i, s := range shown {
		if fits && s.Description != "" {
			text := described(s.Description)
			// <skill name="x" /> becomes <skill name="x">text</skill>.
			if more := utf8.RuneCountInString(text) + len(">") + len("</skill>") - len(" />"); more <= room {
				room -= more
				b.WriteString(`<skill name="` + names[i] + `">` + text + "</skill>\n")
				continue
			}
			fits = false
		}
		b.WriteString(`<skill name="` + names[i] + "\" />\n")
	}
	b.WriteString(listingClose)
	return b.String()
}

// nameLine is the characters of a line with a name alone.
func nameLine(escaped string) int {
	return utf8.RuneCountInString(escaped) + len("<skill name=\"\" />\n")
}

// listingOfNames lists as many names as there is room for, with a comment that says
// how many are left out. The total is what all of them would take.
func listingOfNames(names []string, total, room int) string {
	n := len(names)
	for n > 0 && total+omittedLength(len(names)-n) > room {
		n--
		total -= nameLine(names[n])
	}
	var b strings.Builder
	b.WriteString(listingOpen)
	for _, name := range names[:n] {
		b.WriteString(`<skill name="` + name + "\" />\n")
	}
	b.WriteString(omitted(len(names) - n))
	b.WriteString(listingClose)
	return b.String()
}

// omittedLength is the length of the comment, which is asked for many times before
// it is written.
func omittedLength(n int) int {
	if n == 0 {
		return 0
	}
	length := len("<!--  more skills omitted -->\n")
	for ; n > 0; n /= 10 {
		length++
	}
	return length
}

func omitted(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("<!-- %d more skills omitted -->\n", n)
}

// described is a description as a listing has it: on one line, escaped, and no
// longer than the specification allows, so that one does not take the room of many.
func described(text string) string {
	n := 0
	for i := range text {
		if n == specDescription {
			text = text[:i] + "…"
			break
		}
		n++
	}
	return html.EscapeString(strings.Join(strings.Fields(text), " "))
}

// ReadDescription is the description of the tool that reads skills, with a listing,
// and a text behind it if it is not empty.
func ReadDescription(listing, suffix string) string {
	return withSuffix("Reads a skill: instructions for a kind of task, written for you. When a task fits one of the skills below, read it before you begin, and follow it. "+
		"A skill may have sections, which its text tells of: read those that you need.\n\n"+listing, suffix)
}

// InvokeDescription is the description of the tool that calls computed skills, with
// a listing, and a text behind it if it is not empty.
func InvokeDescription(listing, suffix string) string {
	return withSuffix("Invokes a skill whose text is made when it is asked for. When a task fits one of the skills below, invoke it, with what it should know as args, and use what it answers.\n\n"+listing, suffix)
}

func withSuffix(text, suffix string) string {
	if suffix == "" {
		return text
	}
	return text + "\n\n" + suffix
}
