package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/belay-run/belay/serve/api"
)

// Waterfall is the drawing of a turn: rows of bars on one axis of time.
type Waterfall struct {
	Rows  []bar
	Ticks []tick
	Total time.Duration // of the part that is shown
	Zoom  bool          // only a part is shown
}

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

// draw makes the waterfall of a turn.
func draw(t *api.Timeline) Waterfall {
	if len(t.Spans) == 0 {
		return Waterfall{}
	}
	begin, end := t.Spans[0].Begin, time.Time{}
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.Begin.Before(begin) {
			begin = s.Begin
		}
		end = later(end, cmp.Or(s.End, s.Begin))
	}
	if t.Turn.End.IsZero() && t.Turn.State == "running" {
		end = later(end, time.Now())
	}
	return drawPart(t, begin, end)
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// drawPart draws the part of a turn between two times.
func drawPart(t *api.Timeline, begin, end time.Time) Waterfall {
	w := Waterfall{Total: max(end.Sub(begin), time.Microsecond)}
	percent := func(at time.Time) float64 {
		return min(max(float64(at.Sub(begin))/float64(w.Total)*100, 0), 100)
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
		stop := cmp.Or(s.End, end)
		if stop.Before(begin) || s.Begin.After(end) {
			continue // outside of the part
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
	for i := range 3 { // more do not fit on a phone
		w.Ticks = append(w.Ticks, tick{decimal(float64(i) * 50), short(w.Total * time.Duration(i) / 2)})
	}
	return w
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

// turnPath returns the address of a turn, and of a bar of it.
func turnPath(session, turn, key string) string {
	q := url.Values{"turn": {turn}}
	if key != "" {
		q.Set("bar", key)
	}
	return sessionPath(session) + "?" + q.Encode()
}

// told adds to the label what people who do not see the bar need.
func (b *bar) told(begin time.Time) string {
	return fmt.Sprintf(", %s, %s, after %s, took %s", b.Kind, b.Outcome, short(max(b.Begin.Sub(begin), 0)), cmp.Or(b.Took, "no time"))
}
