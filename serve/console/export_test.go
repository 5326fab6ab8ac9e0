package console

import (
	"time"

	"github.com/belay-run/belay/serve/api"
)

// Box is a hook in a graph, for tests.
type Box struct {
	ID, States, Tone, Took string
	X, Y                   int
}

// Drawn is a graph, for tests.
type Drawn struct {
	Boxes           []Box
	Columns, Arrows []string
	Width, Height   int
}

// LayOut draws the graph of a plan.
func LayOut(p *api.Plan, lines []api.HookLine, nodes []api.GraphNode, stats []api.HookStat) Drawn {
	b := hooksView{Stats: api.HookStatList{Hooks: stats}}
	b.join(lines, []api.Plan{*p}, nodes)
	g := b.Phases[0].drawing
	d := Drawn{Arrows: g.Arrows, Width: g.Width, Height: g.Height}
	for i := range g.Boxes {
		x := &g.Boxes[i]
		d.Boxes = append(d.Boxes, Box{x.ID, x.States, x.tone(), x.Took, x.X, x.Y})
	}
	for _, c := range g.Columns {
		d.Columns = append(d.Columns, c.Name+": "+c.Note)
	}
	return d
}

// The size of a box.
const (
	BoxWidth  = boxWidth
	BoxHeight = boxHeight
)

// DrawDays draws numbers of days, and returns the heights of the bars, the lines and the days
// with names.
func DrawDays(days []time.Time, values []float64) (heights, lines, names []string) {
	c := drawDays(days, values, cents)
	for _, b := range c.Bars {
		heights = append(heights, b.H)
	}
	for _, l := range c.Lines {
		lines = append(lines, l.Text)
	}
	for _, d := range c.Days {
		names = append(names, d.Text)
	}
	return heights, lines, names
}

// RoundUp is roundUp.
func RoundUp(n float64) float64 { return roundUp(n) }

// EveryDay is everyDay.
func EveryDay(rows []api.UsageRow, since time.Time, n int) []api.UsageRow {
	return everyDay(rows, since, n)
}
