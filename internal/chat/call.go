package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/label"
	"github.com/belay-run/belay/internal/visible"
)

// These constants limit how many lines of a result are shown.
const (
	resultLines = 3
	errorLines  = 8
	diffLines   = 40
)

type call struct {
	part    *belay.CallPart
	run     string    // the run of the subagent that made the call, or ""
	agent   string    // the name of that subagent, or ""
	since   time.Time // zero if the start time is unknown
	waits   bool      // waits for a person's decision
	news    string    // the last progress message of the tool
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

// line returns one line: a mark, a title and a remark. It shortens the title, and never the
// remark.
func (m *model) line(mark, title, remark string) string {
	if remark != "" {
		remark = " · " + remark
	}
	room := m.width - 4 - len([]rune(remark))
	return mark + " " + short(title, room) + m.look.dim.Render(remark)
}

func (m *model) title(c *call) string {
	title := visible.Clean(c.part.Tool) + " " + gist(c.part.Input)
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

// doneLines returns a finished call and the first lines of its result.
func (m *model) doneLines(c *call) []string {
	mark, most, remark := m.look.good.Render("✓"), resultLines, ""
	if !c.since.IsZero() {
		remark = took(c.elapsed)
	}
	if c.result.IsError {
		mark, most = m.look.bad.Render("✗"), errorLines
		if c.result.Class != "" && c.result.Class != belay.ClassFailed {
			remark = string(c.result.Class)
		}
	}
	lines := []string{m.line(mark, m.title(c), remark)}
	if len(c.part.RewrittenBy) > 0 {
		text := fmt.Sprintf("rewritten by %s: %s", strings.Join(c.part.RewrittenBy, ", "), gist(c.part.Final))
		lines = append(lines, "  "+m.look.warn.Render(short(visible.Clean(text), m.width-4)))
	}
	if diff := diffOf(c.result.Render); diff != "" {
		return append(lines, m.diff(diff)...)
	}
	shown := strings.Split(strings.TrimSpace(visible.Clean(c.result.Text)), "\n")
	if len(shown) == 1 && shown[0] == "" {
		return lines
	}
	return append(lines, m.excerpt(shown, most)...)
}

// excerpt returns the first lines of a text, and how many lines follow.
func (m *model) excerpt(text []string, most int) []string {
	var lines []string
	for i, line := range text {
		if i == most && len(text) > most+1 {
			lines = append(lines, m.look.dim.Render(fmt.Sprintf("  │ … %s more", many(len(text)-i, "line"))))
			break
		}
		lines = append(lines, m.look.dim.Render("  │ "+cutTo(line, m.width-6)))
	}
	return lines
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

// diff colours a unified diff.
func (m *model) diff(text string) []string {
	var lines []string
	all := strings.Split(visible.Clean(text), "\n")
	for i, line := range all {
		if i == diffLines && len(all) > diffLines+1 {
			lines = append(lines, m.look.dim.Render(fmt.Sprintf("  │ … %s more", many(len(all)-i, "line"))))
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

// gist returns the input of a call in a few words. The most important field comes first. A
// single field is shown without its key.
func gist(input json.RawMessage) string {
	fields, ok := label.Fields(input)
	if !ok {
		return visible.All(string(input))
	}
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
