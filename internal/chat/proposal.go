package chat

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/visible"
)

// Advice helps a person to decide about a call.
type Advice struct {
	// Cause says in a few words why the call needs approval.
	Cause string
	// Reach describes what the call affects. Run describes how the call would run, if there
	// is more than one possibility.
	Reach, Run string
	// Effects are the things that the call does, as parsed.
	Effects []Effect
	// Change is what the call would change in a file now. It is nil for other calls.
	Change *Change
	// Pattern is a pattern that covers this call and similar calls, or "".
	Pattern string
	// Check returns why a pattern that the user typed is invalid. If nil, all patterns are
	// valid.
	Check func(pattern string) error

	words bool // not a call, but a question that needs text as its answer
}

// Effect is one thing that a call does, such as a command that it runs.
type Effect struct {
	Text string // one short sentence
	Asks bool   // the approval is needed because of it
}

// Change is what a call would change in a file.
type Change struct {
	Path   string
	Action string // created, overwritten, edited or unchanged
	Diff   string // in the unified format
	Cut    bool   // Diff is incomplete
	// Added and Removed are numbers of lines.
	Added, Removed int
	// Problem says why the call would fail now.
	Problem string
}

// Line is a line of a proposal. Mark says what it is: '+' added, '-' removed, ' ' unchanged,
// '@' the position of a part of a file, '$' a command, '!' a reason why approval is needed, '·' anything
// else.
type Line struct {
	Mark   rune
	Number int // the number of the line in the file; 0: none
	Text   string
}

// Head returns the question to a person about a call.
func Head(q *belay.Question, a *Advice) string {
	if planOf(q) != "" {
		return "Approve this plan?"
	}
	deed := visible.Clean(q.Tool) + " to run"
	if c := a.Change; c != nil && c.Path != "" {
		verb := map[string]string{"created": "create", "overwritten": "overwrite", "unchanged": "write, without a change,"}[c.Action]
		if verb == "" {
			verb = "change"
		}
		deed = fmt.Sprintf("%s to %s %s", visible.Clean(q.Tool), verb, visible.All(c.Path))
	}
	if q.Depth > 0 {
		deed += " for " + subagentNamed(visible.Clean(q.Agent), q.Depth)
	}
	return "Allow " + deed + "?"
}

// Proposal returns what a call would do: the change of the file as it is now, the command
// and what it really runs, or the whole input. original is the model's input, if a hook
// rewrote it, and otherwise nil.
func Proposal(q *belay.Question, a *Advice, original json.RawMessage) []Line {
	var lines []Line
	switch command, plan := commandOf(q.Input), planOf(q); {
	case plan != "" && original == nil:
		for text := range strings.SplitSeq(visible.Clean(plan), "\n") {
			lines = append(lines, Line{Mark: ' ', Text: text})
		}
	case original != nil:
		for _, l := range compared(spelled(original), spelled(q.Input)) {
			lines = append(lines, Line{Mark: l.mark, Text: l.text})
		}
		if a.Change != nil {
			lines = append(lines, changed(a.Change)...)
		}
	case a.Change != nil && (a.Change.Diff != "" || a.Change.Action == "unchanged"):
		lines = changed(a.Change)
	case command != "":
		for i, text := range strings.Split(visible.All(command), "\n") {
			mark := '$'
			if i > 0 {
				mark = ' '
			}
			lines = append(lines, Line{Mark: mark, Text: text})
		}
		lines = append(lines, others(q.Input, "command", command)...)
	default:
		for _, text := range spelled(q.Input) {
			lines = append(lines, Line{Mark: '·', Text: text})
		}
		if a.Change != nil {
			lines = append(lines, changed(a.Change)...)
		}
	}
	return append(lines, effects(q, a)...)
}

// presentPlan is the tool that asks for approval of a plan.
const presentPlan = "present_plan"

// IsPlan reports whether a question asks to approve a plan. Such an approval covers no other plan.
func IsPlan(q *belay.Question) bool { return planOf(q) != "" }

// planOf returns the plan that a call asks to approve, as Markdown, or "".
func planOf(q *belay.Question) string {
	var in struct {
		Plan string `json:"plan"`
	}
	if q.Tool != presentPlan || json.Unmarshal(q.Input, &in) != nil {
		return ""
	}
	return strings.TrimSpace(in.Plan)
}

// commandOf returns the command of a call that runs one, or "".
func commandOf(input json.RawMessage) string {
	var in struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal(input, &in) // other inputs have none
	return in.Command
}

// others returns the fields of an input without the field that is shown already. It keeps a
// second field with the same key.
func others(input json.RawMessage, key, shown string) []Line {
	fields, _ := label.Fields(input)
	var lines []Line
	for _, f := range fields {
		if f.Key != key || f.Value != shown {
			lines = append(lines, Line{Mark: '·', Text: visible.All(f.Key) + ": " + visible.OneLine(f.Value)})
		}
	}
	return lines
}

// effects returns what a command really runs and changes. It leaves out what the command
// line itself says.
func effects(q *belay.Question, a *Advice) []Line {
	command := strings.Join(strings.Fields(commandOf(q.Input)), " ")
	if command == "" || len(a.Effects) == 1 && strings.TrimRight(a.Effects[0].Text, ".") == "Runs "+command {
		return nil
	}
	var lines []Line
	for _, e := range a.Effects {
		mark := '·'
		if e.Asks {
			mark = '!'
		}
		lines = append(lines, Line{Mark: mark, Text: visible.OneLine(strings.TrimRight(e.Text, "."))})
	}
	return lines
}

// changed returns the lines of a diff. The lines of its header are left out, because the
// question names the file.
func changed(c *Change) []Line {
	var lines []Line
	if c.Problem != "" {
		lines = append(lines, Line{Mark: '!', Text: visible.OneLine(c.Problem)})
	}
	if c.Action == "unchanged" {
		lines = append(lines, Line{Mark: '·', Text: "the file has this content already"})
	}
	old, now := 0, 0
	for text := range strings.SplitSeq(strings.TrimRight(visible.All(c.Diff), "\n"), "\n") {
		switch {
		case strings.HasPrefix(text, "@@"):
			old, now = positions(text)
			if len(lines) > 0 {
				lines = append(lines, Line{Mark: '@', Text: "⋯"})
			}
		case old == 0 && now == 0, text == "": // the header
		case text[0] == '+':
			lines = append(lines, Line{'+', now, text[1:]})
			now++
		case text[0] == '-':
			lines = append(lines, Line{'-', old, text[1:]})
			old++
		case text[0] == ' ':
			lines = append(lines, Line{' ', now, text[1:]})
			old++
			now++
		default: // a remark, such as that the last line has no line break
			lines = append(lines, Line{Mark: '·', Text: strings.TrimPrefix(text, `\ `)})
		}
	}
	if c.Cut {
		lines = append(lines, Line{Mark: '!', Text: "the change is longer than this: v shows the whole input"})
	}
	return lines
}

// positions returns the line numbers of the header of a hunk: @@ -1,2 +1,3 @@.
func positions(header string) (old, now int) {
	for word := range strings.FieldsSeq(header) {
		number, _, _ := strings.Cut(strings.TrimLeft(word, "+-"), ",")
		n, err := strconv.Atoi(number)
		switch {
		case err != nil:
		case word[0] == '-':
			old = n
		case word[0] == '+':
			now = n
		}
	}
	return old, max(now, 1)
}

// Why returns why a call needs approval, and how far it reaches and how it would run, in one
// line each.
func Why(q *belay.Question, a *Advice) []string {
	var lines []string
	if a.Cause != "" {
		lines = append(lines, "Why: "+visible.OneLine(a.Cause))
	} else if why := visible.OneLine(q.Reason); why != "" {
		if q.By != "" {
			why = fmt.Sprintf("%s (asked by %s)", why, visible.OneLine(q.By))
		}
		lines = append(lines, "Why: "+why)
	}
	var how []string
	if zone, _, _ := strings.Cut(a.Reach, ":"); zone != "" {
		how = append(how, visible.OneLine(zone))
	}
	if a.Run != "" {
		how = append(how, "runs "+visible.OneLine(a.Run))
	}
	if len(how) > 0 {
		lines = append(lines, strings.Join(how, " · "))
	}
	return lines
}
