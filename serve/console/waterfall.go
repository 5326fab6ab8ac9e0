package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/serve/api"
)

// waterfall is the drawing of a turn: rows of bars on one axis of time.
type waterfall struct {
	Rows  []bar
	Ticks []tick
	Begin time.Time     // the axis counts from here
	Total time.Duration // of the whole turn
	// From and To are the part that is shown. Hidden is how many rows are outside of it.
	From, To time.Duration
	Hidden   int
}

// zoomed reports whether only a part is shown.
func (w *waterfall) zoomed() bool { return w.From > 0 || w.To < w.Total }

// bar is one row of a waterfall.
type bar struct {
	api.Span

	Label  string
	Class  string // the kind and the outcome, for the colour
	X, W   string // in percent of the axis
	Took   string
	Folded int    // how many quiet hook runs this row stands for; 0: one span
	Key    string // identifies the bar in the address
	Indent bool
}

// tick is a mark of the axis.
type tick struct{ X, Text string }

// foldFrom is from how many hook runs without objection on a dispatch share one row.
const foldFrom = 3

// draw makes the waterfall of the part of a turn between two times after its begin. If to is not
// after from, it draws the whole turn.
func draw(t *api.Timeline, from, to time.Duration) waterfall {
	if len(t.Spans) == 0 {
		return waterfall{}
	}
	w := waterfall{Begin: cmp.Or(t.Turn.Begin, t.Spans[0].Begin)}
	var end time.Time
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.Begin.Before(w.Begin) {
			w.Begin = s.Begin
		}
		end = later(end, cmp.Or(s.End, s.Begin))
	}
	if t.Turn.End.IsZero() && t.Turn.State == "running" {
		end = later(end, time.Now())
	}
	w.Total = max(end.Sub(w.Begin), time.Microsecond)
	w.From, w.To = max(from, 0), min(to, w.Total)
	if w.To-w.From < leastPart {
		w.From, w.To = 0, w.Total
	}
	w.addRows(t)
	for i := range 3 { // more do not fit on a phone
		w.Ticks = append(w.Ticks, tick{decimal(float64(i) * 50), short(w.From + (w.To-w.From)*time.Duration(i)/2)})
	}
	return w
}

// leastPart is the shortest part that is drawn.
const leastPart = 10 * time.Microsecond

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// addRows draws the spans of the part.
func (w *waterfall) addRows(t *api.Timeline) {
	begin, end := w.Begin.Add(w.From), w.Begin.Add(w.To)
	percent := func(at time.Time) float64 {
		return min(max(float64(at.Sub(begin))/float64(w.To-w.From)*100, 0), 100)
	}
	quiet := make(map[string][]int) // by dispatch: the spans without objection
	for i := range t.Spans {
		if s := &t.Spans[i]; isQuietRun(s) && s.Dispatch != "" {
			quiet[s.Dispatch] = append(quiet[s.Dispatch], i)
		}
	}
	for i := range t.Spans {
		s := t.Spans[i]
		b := bar{Label: s.Name, Key: keyOf(&s), Indent: s.Kind == api.SpanHook}
		if same := quiet[s.Dispatch]; isQuietRun(&s) && len(same) >= foldFrom {
			if same[0] != i {
				continue
			}
			for _, j := range same {
				s.End = later(s.End, t.Spans[j].End)
			}
			b.Folded, b.Label = len(same), plural(len(same), "hook", "hooks")+", no objection"
		}
		b.Span = s
		stop := cmp.Or(s.End, w.Begin.Add(w.Total))
		if stop.Before(begin) || s.Begin.After(end) {
			w.Hidden++
			continue
		}
		x := percent(s.Begin)
		b.X, b.W = decimal(x), decimal(max(percent(stop)-x, 0.05))
		switch took := stop.Sub(s.Begin); {
		case s.End.IsZero():
			b.Took = s.Outcome // running or waiting
		case took > 0:
			b.Took = short(took)
		}
		b.Class = "bar " + s.Kind + " " + s.Outcome
		w.Rows = append(w.Rows, b)
	}
}

// isQuietRun reports whether a hook ran well and said nothing.
func isQuietRun(s *api.Span) bool {
	return s.Kind == api.SpanHook && s.Outcome == "ok" && len(s.Contributed) == 0
}

// keyOf identifies a span of a turn. It stays the same while the turn grows.
func keyOf(s *api.Span) string {
	switch {
	case s.Run != "":
		return s.Run
	case s.Kind == api.SpanApproval:
		return s.Approval
	case s.Kind == api.SpanSubagent:
		return s.Session
	case s.Call != "":
		return s.Kind + "-" + strconv.Itoa(s.Step) + "-" + s.Call
	default:
		return s.Kind + "-" + strconv.FormatInt(s.Seq, 10) + "-" + strconv.Itoa(s.Step)
	}
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) + "%" }

// find returns the span with a key, or nil.
func find(t *api.Timeline, key string) *api.Span {
	i := slices.IndexFunc(t.Spans, func(s api.Span) bool { return keyOf(&s) == key })
	if i < 0 {
		return nil
	}
	return &t.Spans[i]
}

// gatesOf returns a run of each dispatch of tool.pre that was about a call: see askedHooks of
// package inspect. shared says that the step has several calls, and that the records do not say
// which call each dispatch was about.
func gatesOf(t *api.Timeline, step int) (runs []string, shared bool) {
	calls := 0
	seen := make(map[string]bool)
	for i := range t.Spans {
		switch s := &t.Spans[i]; {
		case s.Step != step:
		case s.Kind == api.SpanTool:
			calls++
		case s.Phase == belay.ToolPre.Name() && !seen[s.Dispatch]:
			seen[s.Dispatch] = true
			runs = append(runs, s.Run)
		}
	}
	if calls == 1 && len(runs) > 0 {
		return runs[len(runs)-1:], false // a turn that was resumed may have asked again
	}
	return runs, len(runs) > 1
}

// told adds to the label what people who do not see the bar need.
func (b *bar) told(begin time.Time) string {
	return fmt.Sprintf(", %s, %s, after %s, took %s", b.Kind, b.Outcome, short(max(b.Begin.Sub(begin), 0)), cmp.Or(b.Took, "no time"))
}
