package console_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/serve/api"
	"github.com/belay-run/belay/serve/console"
)

// toolPre lays out the phase of the sample that has hooks in every state.
func toolPre(t *testing.T) console.Drawn {
	t.Helper()
	f := sample()
	lines := slices.DeleteFunc(f.hooks, func(l api.HookLine) bool { return l.Phase != "tool.pre" })
	return console.LayOut(&only(f.plans, "tool.pre")[0], lines, f.nodes, f.stats)
}

// SPEC G-04
func TestGraphMarksTheStateOfEachHook(t *testing.T) {
	t.Parallel()
	boxes := toolPre(t).Boxes
	want := map[string][2]string{ // the words and the colour
		"redact": {"on", "good"}, "secrets-scan": {"shadow", "run"}, "licence-check-for-new-files": {"limited", "wait"},
		"review": {"quarantined", "bad"}, "lint-all": {"on, failing", "bad"}, "payments-gate": {"closed, untrusted", "bad"}, "old-check": {"off", ""},
	}
	for _, b := range boxes {
		if w, ok := want[b.ID]; ok && (b.States != w[0] || b.Tone != w[1]) {
			t.Errorf("%s is drawn as %q in the colour %q, want %q in %q", b.ID, b.States, b.Tone, w[0], w[1])
		}
		delete(want, b.ID)
	}
	if len(want) > 0 {
		t.Errorf("not drawn: %v", want)
	}
}

// SPEC G-04
func TestGraphHasAColumnForEachStage(t *testing.T) {
	t.Parallel()
	d := toolPre(t)
	if want := []string{"Stage 1: one after the other", "Stage 2: at the same time", "Stage 3: at the same time", "Off: do not run"}; !slices.Equal(d.Columns, want) {
		t.Errorf("the columns are %q, want %q", d.Columns, want)
	}
	at := make(map[string]console.Box)
	for i, b := range d.Boxes {
		at[b.ID] = b
		if b.X+console.BoxWidth > d.Width || b.Y+console.BoxHeight > d.Height {
			t.Errorf("the box of %s leaves the drawing of %d by %d", b.ID, d.Width, d.Height)
		}
		for _, other := range d.Boxes[:i] {
			if abs(b.X-other.X) < console.BoxWidth && abs(b.Y-other.Y) < console.BoxHeight {
				t.Errorf("the boxes of %s and %s overlap", b.ID, other.ID)
			}
		}
	}
	if at["redact"].X != at["paths"].X || at["redact"].Y >= at["paths"].Y {
		t.Error("redact runs before paths in the same stage, so its box must be above")
	}
	if at["paths"].X >= at["no-prod"].X || at["no-prod"].X >= at["lint-all"].X {
		t.Error("a later stage must be further right")
	}
}

func abs(n int) int { return max(n, -n) }

// An arrow that passes a column must not cross its boxes: a reader would take it for an arrow
// from that box.
func TestGraphArrowsPassBelowTheBoxes(t *testing.T) {
	t.Parallel()
	d := toolPre(t)
	if len(d.Arrows) != 5 {
		t.Fatalf("%d arrows, want one for each of the 5 dependencies: %q", len(d.Arrows), d.Arrows)
	}
	lowest := 0
	for _, b := range d.Boxes {
		lowest = max(lowest, b.Y+console.BoxHeight)
	}
	passes := regexp.MustCompile(` (\d+)H`)
	found := false
	for _, a := range d.Arrows {
		if m := passes.FindStringSubmatch(a); m != nil {
			found = true
			if y, _ := strconv.Atoi(m[1]); y <= lowest || y > d.Height {
				t.Errorf("the arrow %q passes at %d, want below the boxes (%d) and inside (%d)", a, y, lowest, d.Height)
			}
		}
	}
	if !found {
		t.Errorf("no arrow from stage 1 to stage 3 in %q", d.Arrows)
	}
}

func TestGraphLeavesOutArrowsFromHooksThatAreOff(t *testing.T) {
	t.Parallel()
	p := &api.Plan{Phase: "p", Entries: []api.PlanEntry{{Position: 1, ID: "a", Stage: 1, After: []string{"gone"}}}, Disabled: []string{"b"}}
	d := console.LayOut(p, []api.HookLine{{ID: "a", Phase: "p", State: "on"}, {ID: "b", Phase: "p", State: "off"}}, nil, nil)
	if len(d.Boxes) != 2 || len(d.Arrows) != 0 {
		t.Errorf("%d boxes and the arrows %q, want 2 boxes and no arrow", len(d.Boxes), d.Arrows)
	}
}

func TestGraphOfOneHookHasNoColumnNames(t *testing.T) {
	t.Parallel()
	p := &api.Plan{Phase: "p", Entries: []api.PlanEntry{{Position: 1, ID: "a", Stage: 1, Runs: "inline"}}}
	line := []api.HookLine{{ID: "a", Phase: "p", State: "on"}}
	if d := console.LayOut(p, line, nil, nil); len(d.Columns) != 0 || len(d.Boxes) != 1 || d.Height > console.BoxHeight+10 {
		t.Errorf("%d boxes below the names %q, in a height of %d", len(d.Boxes), d.Columns, d.Height)
	}
	p.Entries[0].Runs = "queued"
	if d := console.LayOut(p, line, nil, nil); len(d.Columns) != 1 {
		t.Errorf("the columns are %q, want one that says that the hook runs in the background", d.Columns)
	}
}

func TestGraphKeepsLongTextsApart(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("long-", 20)
	p := &api.Plan{Phase: "p", Entries: []api.PlanEntry{{Position: 1, ID: id, Stage: 1}}}
	node := api.GraphNode{Phase: "p", Hook: id, State: "quarantined", Untrusted: true}
	stat := api.HookStat{Phase: "p", Hook: id, Runs: 2, Failures: 1, P99: time.Second.Microseconds()}
	boxes := console.LayOut(p, []api.HookLine{{ID: id, Phase: "p", State: "on"}}, []api.GraphNode{node}, []api.HookStat{stat}).Boxes
	if boxes[0].Took != "" || len([]rune(boxes[0].States)) > 26 {
		t.Errorf("the box says %q beside %q: the texts overlap", boxes[0].States, boxes[0].Took)
	}
}
