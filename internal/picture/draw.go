package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/belay-run/belay/internal/demo"
)

// All sizes are in pixels.
const (
	width     = 960
	margin    = 28
	hooksAt   = 196 // x of the names of hooks
	gridFrom  = 346
	gridTo    = width - margin
	top       = 128 // y of the first row
	rowHeight = 23
	phaseGap  = 7 // space between the hooks of two phases
)

// style has colours for a white and for a black background, because GitHub shows the
// picture on both.
const style = `
  text { font: 12.5px -apple-system, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; fill: #424a53; }
  .title { font-size: 17px; font-weight: 600; fill: #1f2328; }
  .quiet { fill: #818b98; } .small { font-size: 11px; }
  .name { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12px; fill: #32383f; }
  .number { font-size: 12px; font-weight: 600; fill: #59636e; }
  .card { fill: #fdfdfc; stroke: #e4e7eb; } .band { fill: #f3f5f7; } .line { stroke: #e8ebee; }
  .pass { fill: #c3cad2; } .skip, .later { stroke: #b4bcc5; stroke-width: 1.6; fill: none; stroke-linecap: round; }
  .add { fill: #5b9e8f; } .rewrite { fill: #4f83c4; } .deny { fill: #cf5757; } .ask { fill: #e0a33c; } .continue { fill: #8d72b8; }
  .shadow { fill: none; stroke: #cf5757; stroke-width: 1.6; stroke-dasharray: 2.4 2; }
  .kill { stroke: #cf5757; stroke-width: 1.4; stroke-dasharray: 4 4; } .killed { fill: #cf5757; font-weight: 600; font-size: 12px; }
  @media (prefers-color-scheme: dark) {
    text { fill: #b4bcc6; } .title { fill: #eef1f4; } .name { fill: #cdd4dc; } .number { fill: #9aa4af; } .quiet { fill: #7d8793; }
    .card { fill: #14181d; stroke: #2b323a; } .band { fill: #1b2026; } .line { stroke: #252b32; } .pass { fill: #4c5661; }
    .skip, .later { stroke: #59636e; }
  }
`

var legend = []struct {
	mark mark
	text string
}{
	{markPassed, "passed"},
	{markAdded, "added context"},
	{markRewrote, "rewrote"},
	{markDenied, "denied"},
	{markAsked, "timed out: asked a person"},
	{markContinue, "not done: continue"},
	{markShadow, "shadow: recorded only"},
	{markSkipped, "not asked"},
	{markLater, "in the background"},
}

// canvas is a picture that is being drawn.
type canvas struct {
	strings.Builder
	score

	ys   []int // y of each row
	foot int   // y below the last row
}

func draw(rec *demo.Recording) string {
	c := &canvas{score: layout(rec)}
	c.foot = top
	for i, r := range c.rows {
		if i > 0 && r.phase != c.rows[i-1].phase {
			c.foot += phaseGap
		}
		c.ys = append(c.ys, c.foot+rowHeight/2)
		c.foot += rowHeight
	}
	height := c.foot + 106
	c.addf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`, width, height, width, height)
	c.addf(`<title>What the hooks of one turn did, step by step, before and after its process was killed</title>`)
	c.addf(`<style>%s</style>`, style)
	c.addf(`<rect class="card" x="0.5" y="0.5" width="%d" height="%d" rx="12"/>`, width-1, height-1)
	c.text(margin, 42, "title", "One turn, and what every hook did in it")
	c.text(margin, 63, "quiet", fmt.Sprintf("%d hooks on %d phases, %d runs on record. The process is killed on the way; another one continues.",
		len(c.rows), c.phases(), len(c.cells)))
	c.bands()
	c.names()
	for _, cell := range c.cells {
		c.mark(c.x(cell.column), c.ys[cell.row], cell.mark)
	}
	c.kill()
	c.explain(c.foot + 60)
	c.WriteString("</svg>\n")
	return c.String()
}

func (c *canvas) addf(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y int, class, text string) {
	c.addf(`<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, html.EscapeString(text))
}

func (c *canvas) middle(x, y int, class, text string) {
	c.addf(`<text class="%s" x="%d" y="%d" text-anchor="middle">%s</text>`, class, x, y, html.EscapeString(text))
}

// x returns the middle of a column. Each step gets the width of one additional column,
// because its name needs space.
func (c *canvas) x(column int) int {
	at, all := 0, len(c.columns)+len(c.steps)
	for _, s := range c.steps {
		if column >= s.from {
			at++
		}
	}
	return gridFrom + (column+at)*(gridTo-gridFrom)/all
}

// edges returns the x of the left and right side of a step.
func (c *canvas) edges(s step) (left, right int) {
	room := (gridTo - gridFrom) / (len(c.columns) + len(c.steps))
	return c.x(s.from) - room, c.x(s.to-1) + room
}

func (c *canvas) phases() int {
	n := 0
	for i, r := range c.rows {
		if i == 0 || r.phase != c.rows[i-1].phase {
			n++
		}
	}
	return n
}

// bands draws the steps. Every second step has a background.
func (c *canvas) bands() {
	for i, s := range c.steps {
		left, right := c.edges(s)
		if i%2 == 0 {
			c.addf(`<rect class="band" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, left, 82, right-left, c.foot-82+8)
		}
		c.middle((left+right)/2, 99, "number", s.name)
		c.middle((left+right)/2, 115, "quiet small", s.calls)
	}
	for _, y := range c.ys {
		c.addf(`<line class="line" x1="%d" y1="%d" x2="%d" y2="%d"/>`, gridFrom, y, gridTo, y)
	}
}

func (c *canvas) names() {
	c.text(margin, 107, "quiet small", "PHASE")
	c.text(hooksAt, 107, "quiet small", "HOOK")
	for i, r := range c.rows {
		if i == 0 || r.phase != c.rows[i-1].phase {
			c.text(margin, c.ys[i]+4, "quiet", r.phase)
		}
		c.text(hooksAt, c.ys[i]+4, "name", r.hook)
	}
}

// kill draws a line where the process was killed.
func (c *canvas) kill() {
	if c.killed <= 0 {
		return
	}
	x := (c.x(c.killed-1) + c.x(c.killed)) / 2
	c.addf(`<line class="kill" x1="%d" y1="%d" x2="%d" y2="%d"/>`, x, top-4, x, c.foot+14)
	c.middle(x, c.foot+29, "killed", "kill -9")
}

func (c *canvas) mark(x, y int, m mark) {
	switch m {
	case markSkipped:
		c.addf(`<line class="skip" x1="%d" y1="%d" x2="%d" y2="%d"/>`, x-3, y, x+3, y)
	case markLater:
		c.addf(`<circle class="later" cx="%d" cy="%d" r="4"/>`, x, y)
	case markPassed:
		c.addf(`<circle class="pass" cx="%d" cy="%d" r="3.5"/>`, x, y)
	case markAdded, markRewrote, markDenied, markAsked, markContinue, markShadow:
		c.addf(`<circle class="%s" cx="%d" cy="%d" r="6"/>`, m, x, y)
	}
}

// explain draws the legend, in two rows.
func (c *canvas) explain(y int) {
	const perRow, room = 5, (width - 2*margin) / 5
	for i, l := range legend {
		x, row := margin+i%perRow*room, y+i/perRow*24
		c.mark(x+6, row-4, l.mark)
		c.text(x+20, row, "small", l.text)
	}
}
