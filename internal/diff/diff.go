// Package diff compares texts line by line.
package diff

import (
	"cmp"
	"fmt"
	"strings"
)

const (
	context  = 3     // lines around a change
	maxEdits = 1_000 // changed lines up to which the shortest diff is looked for
)

// Unified compares two texts line by line, in the format that patch reads. The names are
// used as they are; an empty name stands for a missing file.
func Unified(from, to, before, after string) (diff string, added, removed int) {
	a, b := splitLines(before), splitLines(after)
	var out strings.Builder
	var h hunk
	flush := func() {
		h.print(&out, a, b)
		h = hunk{}
	}
	for _, s := range script(a, b) {
		removed += s.aTo - s.aFrom
		added += s.bTo - s.bFrom
		if len(h) > 0 && s.aFrom-h[len(h)-1].aTo > 2*context {
			flush()
		}
		h = append(h, s)
	}
	flush()
	if out.Len() == 0 {
		return "", 0, 0
	}
	return "--- " + cmp.Or(from, "/dev/null") + "\n+++ " + cmp.Or(to, "/dev/null") + "\n" + out.String(), added, removed
}

// splitLines splits a text after each newline.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// span replaces a run of lines of one text by a run of the other.
type span struct{ aFrom, aTo, bFrom, bTo int }

// hunk is a list of spans that are near enough to be shown together.
type hunk []span

func (h hunk) print(out *strings.Builder, a, b []string) {
	if len(h) == 0 {
		return
	}
	first, last := h[0], h[len(h)-1]
	lead := min(context, first.aFrom)
	trail := min(context, len(a)-last.aTo)
	aFrom, aTo := first.aFrom-lead, last.aTo+trail
	bFrom, bTo := first.bFrom-lead, last.bTo+trail
	fmt.Fprintf(out, "@@ -%s +%s @@\n", extent(aFrom, aTo), extent(bFrom, bTo))
	at := aFrom
	for _, s := range h {
		mark(out, ' ', a[at:s.aFrom])
		mark(out, '-', a[s.aFrom:s.aTo])
		mark(out, '+', b[s.bFrom:s.bTo])
		at = s.aTo
	}
	mark(out, ' ', a[at:aTo])
}

// extent formats a range of lines for the header of a hunk: an empty one is named
// by the line before it.
func extent(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, to-from)
	}
}

func mark(out *strings.Builder, sign byte, lines []string) {
	for _, line := range lines {
		out.WriteByte(sign)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// script returns what to replace in a to get b, in order, with at least one common
// line between any two spans.
func script(a, b []string) []span {
	lead := 0
	for lead < len(a) && lead < len(b) && a[lead] == b[lead] {
		lead++
	}
	trail := 0
	for trail < len(a)-lead && trail < len(b)-lead && a[len(a)-1-trail] == b[len(b)-1-trail] {
		trail++
	}
	a, b = a[lead:len(a)-trail], b[lead:len(b)-trail]
	if len(a) == 0 && len(b) == 0 {
		return nil
	}
	spans := shortest(a, b)
	if spans == nil {
		spans = []span{{0, len(a), 0, len(b)}}
	}
	for i := range spans {
		spans[i].aFrom += lead
		spans[i].aTo += lead
		spans[i].bFrom += lead
		spans[i].bTo += lead
	}
	return spans
}

// shortest finds the shortest script by Myers' greedy algorithm, or nil if it
// would be longer than maxEdits.
func shortest(a, b []string) []span {
	most := min(len(a)+len(b), maxEdits)
	// reach[k] is how far into a the furthest path on diagonal k comes; trail has it
	// as it was before each round.
	reach := make([]int, 2*most+3)
	var trail [][]int
	zero := most + 1
	for d := 0; d <= most; d++ {
		trail = append(trail, append([]int(nil), reach[zero-d-1:zero+d+2]...))
		for k := -d; k <= d; k += 2 {
			x := reach[zero+k-1] + 1
			if k == -d || k != d && reach[zero+k-1] < reach[zero+k+1] {
				x = reach[zero+k+1]
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[zero+k] = x
			if x >= len(a) && x-k >= len(b) {
				return retrace(trail, len(a), len(b))
			}
		}
	}
	return nil
}

// retrace follows the rounds of shortest back from the end, and joins neighbouring
// edits.
func retrace(trail [][]int, x, y int) []span {
	var spans []span
	for d := len(trail) - 1; d > 0; d-- {
		before := func(k int) int { return trail[d][k+d+1] }
		k := x - y
		from := k - 1
		if k == -d || k != d && before(k-1) < before(k+1) {
			from = k + 1
		}
		px := before(from)
		py := px - from
		edit := span{px, px, py, py + 1} // a line of b comes in
		if from == k-1 {
			edit = span{px, px + 1, py, py} // a line of a goes
		}
		if n := len(spans); n > 0 && spans[n-1].aFrom == edit.aTo && spans[n-1].bFrom == edit.bTo {
			spans[n-1].aFrom, spans[n-1].bFrom = edit.aFrom, edit.bFrom
		} else {
			spans = append(spans, edit)
		}
		x, y = px, py
	}
	for i, j := 0, len(spans)-1; i < j; i, j = i+1, j-1 {
		spans[i], spans[j] = spans[j], spans[i]
	}
	return spans
}
