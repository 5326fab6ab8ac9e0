// Package timeline draws the records of a turn as a chart in text. Each run is a bar. Its
// position and length show when it ran.
package timeline

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// Width is how many columns the bars have.
const Width = 40

var marks = map[hook.State]string{
	hook.Completed: "█", hook.Failed: "▓", hook.TimedOut: "▒", hook.Skipped: "·",
	hook.Backgrounded: "→", hook.Started: "░", hook.Interrupted: "▓",
}

// Mark is an event between runs. It is drawn as a line.
type Mark struct {
	At   time.Time
	Text string
}

// Write draws runs in the order in which they started. Consecutive runs of one phase have a
// common heading. A mark is drawn before the first run that started later.
func Write(w io.Writer, runs []hook.Run, marks ...Mark) error {
	if len(runs) == 0 {
		_, err := fmt.Fprintln(w, "  nothing ran")
		return err
	}
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b hook.Run) int { return a.Started.Compare(b.Started) })
	first, last := runs[0].Started, runs[0].Started
	widest := 0
	for _, r := range runs {
		if end := r.Started.Add(time.Duration(r.Latency)); end.After(last) {
			last = end
		}
		widest = max(widest, len(name(r)))
	}
	scale := newScale(first, last)
	var b strings.Builder
	phase := ""
	for _, r := range runs {
		for ; len(marks) > 0 && marks[0].At.Before(r.Started); marks = marks[1:] {
			fmt.Fprintf(&b, "  ---- %s ----\n", marks[0].Text)
			phase = "" // repeat the heading for the next run
		}
		if r.Phase != phase {
			phase = r.Phase
			fmt.Fprintf(&b, "  %s\n", phase)
		}
		fmt.Fprintf(&b, "    %-*s %s %9s  %s\n", widest, name(r), scale.bar(r), latency(r), remark(r))
	}
	fmt.Fprintf(&b, "    %*s %-*s%s\n", widest, "", Width, "0", last.Sub(first).Round(time.Microsecond))
	_, err := io.WriteString(w, b.String())
	return err
}

func name(r hook.Run) string {
	who := r.Subscription
	if r.JobHandler != "" {
		who = r.JobHandler
	}
	if r.Attempt > 0 {
		who += fmt.Sprintf(" #%d", r.Attempt)
	}
	return who
}

func latency(r hook.Run) string {
	if r.State == hook.Skipped || r.State == hook.Backgrounded {
		return "-"
	}
	took, digit := time.Duration(r.Latency), 100*time.Nanosecond
	if took >= 10*time.Millisecond {
		digit = 10 * time.Microsecond // with more digits it would not fit its column
	}
	return took.Round(digit).String()
}

// remark returns how the run ended and what it contributed.
func remark(r hook.Run) string {
	words := []string{r.State.String()}
	for _, d := range r.Contributed {
		words = append(words, "+"+d.Kind)
	}
	for _, a := range r.Audit {
		words = append(words, "audit:"+a.Code)
	}
	if r.Class != "" && r.Class != codes.Skipped {
		words = append(words, string(r.Class))
	}
	if r.Shadow {
		words = append(words, "(shadow)")
	}
	return strings.Join(words, " ")
}

type scale struct {
	first time.Time
	span  time.Duration
}

func newScale(first, last time.Time) scale { return scale{first, max(last.Sub(first), 1)} }

// bar returns a bar of Width columns. At least one column is filled.
func (s scale) bar(r hook.Run) string {
	from := min(s.column(r.Started), Width-1)
	to := max(s.column(r.Started.Add(time.Duration(r.Latency))), from+1)
	return strings.Repeat(" ", from) + strings.Repeat(marks[r.State], to-from) + strings.Repeat(" ", Width-to)
}

// column returns the column of a time, from 0 to Width-1, or Width for the end.
func (s scale) column(t time.Time) int {
	c := int(int64(t.Sub(s.first)) * Width / int64(s.span))
	return min(max(c, 0), Width)
}
