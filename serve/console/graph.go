package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay/serve/api"
)

// drawing is the graph of the hooks of a phase. Each stage is a column, and each hook is a
// box. An arrow goes from a hook to a hook that must run after it. All lengths are pixels.
type drawing struct {
	Width, Height int
	Columns       []column
	Boxes         []box
	Arrows        []string // the paths
}

// column is the head of a column.
type column struct {
	X    int
	Name string
	Note string // how the hooks of the column run
}

// box is one hook in a graph.
type box struct {
	*hookView

	X, Y   int
	Place  string // the position in the plan, or ""
	Short  string // the id, cut to the width of the box
	States string // all states in words, cut to the width of the box
	Took   string // the duration of slow runs, or ""
}

// The measures of a graph.
const (
	boxWidth     = 196
	boxHeight    = 46
	boxGap       = 12 // between the boxes of a column
	columnGap    = 56
	columnHead   = 38
	graphMargin  = 2
	laneGap      = 9  // between arrows that run below the boxes
	boxLetters   = 21 // of an id
	stateLetters = 26
	// besideLetters is how long the states may be if a duration stands beside them.
	besideLetters = 14
)

// layOut draws the plan of a phase. hooks are the hooks of the phase by id.
func layOut(p *api.Plan, hooks map[string]*hookView) drawing {
	stages := stagesOf(p)
	head := columnHead
	if len(stages) == 1 && len(p.Disabled) == 0 && stageNote(stages[0]) == "" {
		head = graphMargin // one column needs no name
	}
	g := drawing{Width: 2 * graphMargin, Height: head}
	at := make(map[string]spot) // by id
	drawn := 0                  // columns
	add := func(name, note string, ids []string) {
		x := graphMargin + drawn*(boxWidth+columnGap)
		if head == columnHead {
			g.Columns = append(g.Columns, column{x, name, note})
		}
		for row, id := range ids {
			h := hooks[id]
			if h == nil {
				h = &hookView{HookLine: api.HookLine{ID: id, Phase: p.Phase, State: "on"}}
			}
			y := head + row*(boxHeight+boxGap)
			b := box{hookView: h, X: x, Y: y, Short: cut(id, boxLetters), States: cut(strings.Join(h.states(), ", "), stateLetters)}
			if h.Entry != nil {
				b.Place = count(h.Entry.Position)
			}
			if h.Stat != nil && len(b.States) <= besideLetters {
				b.Took = "p99 " + short(h.p99())
			}
			g.Boxes = append(g.Boxes, b)
			at[id] = spot{drawn, row, x, y}
			g.Height = max(g.Height, y+boxHeight)
		}
		g.Width = max(g.Width, x+boxWidth+graphMargin)
		drawn++
	}
	for _, stage := range stages {
		var ids []string
		for _, e := range stage {
			ids = append(ids, e.ID)
		}
		add(fmt.Sprintf("Stage %d", stage[0].Stage), stageNote(stage), ids)
	}
	if len(p.Disabled) > 0 {
		add("Off", "do not run", p.Disabled)
	}
	g.connect(p, at)
	g.Height += graphMargin
	return g
}

// spot is where a box is: its column, its row, and its upper left corner.
type spot struct{ column, row, x, y int }

// stagesOf returns the entries of a plan by stage, each in plan order.
func stagesOf(p *api.Plan) [][]*api.PlanEntry {
	byStage := make(map[int][]*api.PlanEntry)
	var numbers []int
	for i := range p.Entries {
		e := &p.Entries[i]
		if byStage[e.Stage] == nil {
			numbers = append(numbers, e.Stage)
		}
		byStage[e.Stage] = append(byStage[e.Stage], e)
	}
	slices.Sort(numbers)
	var all [][]*api.PlanEntry
	for _, n := range numbers {
		slices.SortFunc(byStage[n], func(a, b *api.PlanEntry) int { return cmp.Compare(a.Position, b.Position) })
		all = append(all, byStage[n])
	}
	return all
}

// stageNote says how the hooks of a stage run.
func stageNote(stage []*api.PlanEntry) string {
	runs := stage[0].Runs
	for _, e := range stage {
		if e.Runs != runs {
			runs = "inline"
		}
	}
	switch {
	case runs == "queued":
		return "in the background"
	case runs == "detached":
		return "nobody waits for them"
	case len(stage) == 1:
		return ""
	case runs == "overlapping":
		return "at the same time"
	default:
		return "one after the other"
	}
}

// connect draws the arrows. An arrow to the next column is a curve. An arrow to a later column
// runs below the boxes, so that it crosses none of them.
func (g *drawing) connect(p *api.Plan, at map[string]spot) {
	lane := g.Height
	for i := range p.Entries {
		to, ok := at[p.Entries[i].ID]
		if !ok {
			continue
		}
		for _, before := range p.Entries[i].After {
			from, ok := at[before]
			if !ok {
				continue // it is off
			}
			switch {
			case from.column == to.column && to.row == from.row+1:
				g.Arrows = append(g.Arrows, fmt.Sprintf("M%d %dV%d", from.x+boxWidth/2, from.y+boxHeight, to.y))
			case from.column == to.column:
				x, a, b := from.x+boxWidth, from.y+boxHeight/2, to.y+boxHeight/2
				g.Arrows = append(g.Arrows, fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, a, x+columnGap/2, a, x+columnGap/2, b, x, b))
			case to.column == from.column+1:
				a, b, x, y := from.x+boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2
				g.Arrows = append(g.Arrows, fmt.Sprintf("M%d %dC%d %d %d %d %d %d", a, b, a+columnGap/2, b, x-columnGap/2, y, x, y))
			default:
				lane += laneGap
				a, b, x, y, half := from.x+boxWidth, from.y+boxHeight/2, to.x, to.y+boxHeight/2, columnGap/2
				g.Arrows = append(g.Arrows, fmt.Sprintf("M%d %dC%d %d %d %d %d %dH%dC%d %d %d %d %d %d", a, b, a+half, b, a, lane, a+half, lane, x-half, x, lane, x-half, y, x, y))
			}
		}
	}
	g.Height = max(g.Height, lane)
}

// told describes a box to people who do not see it.
func (b *box) told() string {
	text := b.ID + ": " + strings.Join(b.states(), ", ")
	if b.Place != "" {
		text += ", position " + b.Place
	}
	if b.Stat != nil {
		text += ", p99 " + short(b.p99())
	}
	return text
}
