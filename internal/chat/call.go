package chat

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/lazyregexp"
	"github.com/belay-run/belay/internal/visible"
)

// These constants limit how many lines of a result are shown.
const (
	textLines  = 3
	errorLines = 8
	diffLines  = 40
	// commandLines is for a command that the user runs.
	commandLines = 200
)

type call struct {
	part    *belay.CallPart
	run     string    // the run of the subagent that made the call, or ""
	agent   string    // the name of that subagent, or ""
	since   time.Time // zero if the start time is unknown
	waits   bool      // waits for a person's decision
	news    string    // the last progress message of the tool
	tail    []string  // the last lines of its output so far
	result  *belay.Result
	elapsed time.Duration
}

// used adds a call to the view, and returns it. Text that came before the call is printed
// first.
func (m *model) used(e *belay.Event) *call {
	m.blocks(m.step.text.flush())
	c := &call{part: e.Call, since: e.Time, run: e.Run}
	if e.Depth > 0 {
		c.agent = e.Agent
	}
	m.calls = append(m.calls, c)
	return c
}

// held reports whether a call has not started. No call starts before all calls are decided.
// A serial call runs alone, after the calls before it.
func (m *model) held(c *call) bool {
	earlier := true
	for _, other := range m.calls {
		switch {
		case other == c:
			earlier = false
		case other.run != c.run || other.result != nil:
		case other.waits, earlier && (m.serial[c.part.Tool] || m.serial[other.part.Tool]):
			return true
		}
	}
	return c.waits
}

// tailLines is how many of the last lines of a running command are shown.
const tailLines = 5

// progress keeps the news of a running tool: the last lines of the output of a command, or the
// last message of another tool.
func (c *call) progress(text string) {
	if !strings.HasSuffix(text, "\n") {
		c.news = text
		return
	}
	lines := strings.Split(strings.TrimRight(visible.Clean(text), "\n"), "\n")
	c.tail = append(c.tail, lines[max(len(lines)-tailLines, 0):]...)
	c.tail = c.tail[max(len(c.tail)-tailLines, 0):]
}

// todoLines returns the to-do list in the render data of a result, or nil.
func (m *model) todoLines(render json.RawMessage) []string {
	var data struct {
		Kind  string `json:"kind"`
		Todos []struct {
			Content string `json:"content"`
			Status  string `json:"status"`
		} `json:"todos"`
	}
	if len(render) == 0 || json.Unmarshal(render, &data) != nil || data.Kind != "todo" {
		return nil
	}
	var lines []string
	for _, todo := range data.Todos {
		text := short(visible.OneLine(todo.Content), m.width-6)
		switch todo.Status {
		case "completed":
			lines = append(lines, "  "+m.look.good.Render("☑ ")+m.look.dim.Render(text))
		case "in_progress":
			lines = append(lines, "  "+m.look.accent.Render("▸ ")+m.look.user.Render(text))
		case "cancelled":
			lines = append(lines, "  "+m.look.dim.Render("☒ "+text))
		default:
			lines = append(lines, "  ☐ "+text)
		}
	}
	return lines
}

// planLines returns the approved plan in the render data of a result, and the mode after it, or
// nil.
func (m *model) planLines(render json.RawMessage) []string {
	var data struct {
		Kind string `json:"kind"`
		Plan string `json:"plan"`
		Mode string `json:"mode"`
	}
	if len(render) == 0 || json.Unmarshal(render, &data) != nil || data.Kind != "plan" {
		return nil
	}
	return slices.Concat(m.md.lines(data.Plan), []string{""}, indented("mode "+visible.All(data.Mode)+": the agent carries out the plan", m.look.accent.Render("∙")+" ", m.width-1))
}

// find returns the call with this id that is still in the view. It also compares the run,
// because calls of different agents can have the same id.
func (m *model) find(run string, part *belay.CallPart) *call {
	for _, c := range m.calls {
		if part != nil && c.run == run && c.part.ID == part.ID && c.result == nil {
			return c
		}
	}
	return nil
}

// answered sets the result of a call. It prints calls in the order in which they were made.
func (m *model) answered(e *belay.Event) {
	c := m.find(e.Run, e.Call)
	if c == nil { // the call was made before the turn was resumed
		c = m.used(e)
		c.since = time.Time{}
	}
	for _, other := range m.calls {
		if other != c && other.result == nil && m.held(other) {
			other.since = e.Time // the other call may start only now
		}
	}
	c.result, c.waits = e.Result, false
	if !c.since.IsZero() {
		c.elapsed = e.Time.Sub(c.since)
	}
	for len(m.calls) > 0 && m.calls[0].result != nil {
		m.say(kindLine, m.doneLines(m.calls[0])...)
		m.calls = m.calls[1:]
	}
}

// drop prints all calls of the view and removes them from it. Calls without a result get
// the remark.
func (m *model) drop(remark string) {
	for _, c := range m.calls {
		if c.result != nil {
			m.say(kindLine, m.doneLines(c)...)
		} else {
			m.say(kindLine, m.line(m.look.warn.Render("∙"), m.title(c), remark))
		}
	}
	m.calls = nil
}

// leastTitle is how many columns of a title a remark leaves.
const leastTitle = 12

// line returns one line: a mark, a title and a remark. It shortens the title, and the remark
// only if nearly nothing of the title would be left.
func (m *model) line(mark, title, remark string) string {
	if remark != "" {
		remark = " · " + short(remark, max(m.width-7-leastTitle, leastTitle))
	}
	room := m.width - 4 - len([]rune(remark))
	return mark + " " + short(title, room) + m.look.dim.Render(remark)
}

func (m *model) title(c *call) string {
	title := visible.Clean(c.part.Tool) + " " + gist(c.part.Input, shownElsewhere[c.part.Tool]...)
	if c.agent != "" {
		title = visible.Clean(c.agent) + ": " + title
	}
	return title
}

// openLine returns the line of a call that has no result yet.
func (m *model) openLine(c *call) string {
	if c.waits {
		return m.line(m.look.warn.Render("?"), m.title(c), "waiting for your answer")
	}
	if m.held(c) {
		return m.line(m.look.dim.Render("∙"), m.title(c), "waiting")
	}
	remark := ""
	if d := m.now.Sub(c.since); d >= time.Second {
		remark = took(d)
	}
	if c.news != "" {
		remark = strings.TrimSpace(visible.All(strings.Join(strings.Fields(c.news), " ")) + "  " + remark)
	}
	return m.line(m.look.accent.Render(m.spinner()), m.title(c), remark)
}

// doneLine returns the line of a finished call.
func (m *model) doneLine(c *call) string {
	mark, remark := m.look.good.Render("✓"), ""
	if !c.since.IsZero() {
		remark = took(c.elapsed)
	}
	if c.result.IsError {
		mark = m.look.bad.Render("✗")
		if c.result.Class != "" && c.result.Class != belay.ClassFailed {
			remark = string(c.result.Class)
		}
	}
	return m.line(mark, m.title(c), remark)
}

// doneLines returns a finished call and the first lines of its result.
func (m *model) doneLines(c *call) []string {
	most := textLines
	if c.result.IsError {
		most = errorLines
	}
	if m.commanded {
		m.ran, most = true, commandLines
	}
	return m.resultLines(c, most, diffLines)
}

// wholeResult prints the last result that was shown in part.
func (m *model) wholeResult() {
	if m.cut == nil {
		m.note(m.look.dim.Render("∙"), "every result is shown in full")
		return
	}
	c := m.cut
	m.say(kindLine, m.resultLines(c, math.MaxInt, math.MaxInt)...)
	if c.result.Spilled != "" {
		m.append(kindLine, each(m.look.dim, indented("the whole result is in "+visible.All(c.result.Spilled), "  ∙ ", m.width-1))...)
	}
	m.cut = nil
}

// leftOut matches the line that stands for the middle of a long result, of which the model got only
// the beginning and the end.
var leftOut = lazyregexp.New(`(?m)^\[\.{3} .* left out.*\.{3}\]$`)

// resultLines returns a finished call and at most so many lines of its result, or of its diff.
func (m *model) resultLines(c *call, most, mostOfDiff int) []string {
	lines := []string{m.doneLine(c)}
	if len(c.part.RewrittenBy) > 0 {
		text := fmt.Sprintf("rewritten by %s: %s", strings.Join(c.part.RewrittenBy, ", "), gist(c.part.Final))
		lines = append(lines, "  "+m.look.warn.Render(short(visible.Clean(text), m.width-4)))
	}
	if todo := m.todoLines(c.result.Render); todo != nil {
		return append(lines, todo...)
	}
	if plan := m.planLines(c.result.Render); plan != nil {
		return append(lines, plan...)
	}
	if diff := diffOf(c.result.Render); diff != "" {
		return append(lines, m.diff(c, diff, mostOfDiff)...)
	}
	shown := strings.Split(strings.Trim(strings.TrimRight(visible.Clean(c.result.Text), " \n"), "\n"), "\n")
	if len(shown) == 1 && shown[0] == "" {
		return lines
	}
	return append(lines, m.excerpt(c, shown, most)...)
}

// rest says how many lines of a result are not shown. ctrl+o shows exactly these. of says what they
// are lines of, if they are not all that there is.
func (m *model) rest(c *call, n int, of string) string {
	m.cut = c
	return m.look.dim.Render(cutTo(fmt.Sprintf("  │ … %s more · ctrl+o%s", many(n, "line"), of), m.width-2))
}

// excerpt returns the first lines of the text of a result, and how many lines follow.
func (m *model) excerpt(c *call, text []string, most int) []string {
	var lines []string
	margin := marginOf(text[:min(most, len(text)-1)+1])
	for i, line := range text {
		line = line[min(margin, len(line)):]
		if i == most && len(text)-i > 1 {
			of := ""
			if leftOut.MatchString(c.result.Text) {
				of = " · its middle is left out"
			}
			lines = append(lines, m.rest(c, len(text)-i, of))
			break
		}
		lines = append(lines, m.look.dim.Render("  │ "+cutTo(line, m.width-6)))
	}
	return lines
}

// marginOf returns how many spaces all lines begin with. Blank lines do not count.
func marginOf(lines []string) int {
	margin := -1
	for _, line := range lines {
		if text := strings.TrimLeft(line, " "); text != "" && (margin < 0 || len(line)-len(text) < margin) {
			margin = len(line) - len(text)
		}
	}
	return max(margin, 0)
}

// diffOf returns the unified diff in the render data of a result, or "". Render data with a
// diff is an object with the key "diff".
func diffOf(render json.RawMessage) string {
	var data struct {
		Diff string `json:"diff"`
	}
	if len(render) == 0 || json.Unmarshal(render, &data) != nil {
		return ""
	}
	return strings.TrimRight(data.Diff, "\n")
}

// diff colours the first lines of a unified diff, and says how many lines follow.
func (m *model) diff(c *call, text string, most int) []string {
	var lines []string
	all := strings.Split(visible.Clean(text), "\n")
	if len(all) > 2 && strings.HasPrefix(all[0], "---") && strings.HasPrefix(all[1], "+++") {
		all = all[2:] // the line of the call names the file
	}
	for i, line := range all {
		if i == most && len(all)-i > 1 {
			lines = append(lines, m.rest(c, len(all)-i, ""))
			break
		}
		style := m.look.dim
		switch {
		case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			style = m.look.added
		case strings.HasPrefix(line, "-"):
			style = m.look.removed
		case strings.HasPrefix(line, "@@"):
			style = m.look.accent
		}
		lines = append(lines, m.look.dim.Render("  │ ")+style.Render(cutTo(line, m.width-6)))
	}
	return lines
}

// shownElsewhere are fields that the lines below a call show, or that only explain its command.
var shownElsewhere = map[string][]string{
	"shell": {"description"}, "write": {"content"}, "edit": {"old_string", "new_string", "replace_all"}, "todo_write": {"todos"}, presentPlan: {"plan"},
}

// gist returns the input of a call in a few words, without the fields in hidden. The most
// important field comes first. A single field is shown without its key.
func gist(input json.RawMessage, hidden ...string) string {
	fields, ok := label.Fields(input)
	if !ok {
		return visible.All(string(input))
	}
	fields = slices.DeleteFunc(fields, func(f label.Field) bool { return slices.Contains(hidden, f.Key) })
	about, rest := label.Split(fields)
	var words []string
	if about != "" {
		words = append(words, about)
	}
	for _, f := range rest {
		word := f.Value
		if len(fields) > 1 {
			word = f.Key + ": " + word
		}
		words = append(words, word)
	}
	return visible.All(strings.Join(words, ", "))
}
