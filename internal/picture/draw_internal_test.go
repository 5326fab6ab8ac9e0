package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/internal/demo"
)

// recording returns a turn of two steps. Its process was killed between them.
func recording() *demo.Recording {
	start := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	run := func(second int, dispatch, phase, subscription string, step int, kinds ...string) hook.Run {
		r := hook.Run{
			ID: dispatch + subscription, Dispatch: dispatch, Phase: phase, Subscription: subscription,
			Scope: hook.Scope{Step: step}, Started: at(second), State: hook.Completed,
		}
		for _, kind := range kinds {
			r.Contributed = append(r.Contributed, hook.Digest{Kind: kind})
		}
		return r
	}
	shadow := run(3, "d2", "tool.pre", "trial", 1, "deny")
	shadow.Shadow = true
	skipped := run(3, "d2", "tool.pre", "later", 1)
	skipped.State = hook.Skipped
	return &demo.Recording{
		Killed: at(4),
		Runs: []hook.Run{ // not in order of time
			run(5, "d3", "tool.pre", "gate <&>", 2),
			run(1, "d1", "turn.pre_policy", "limits", 0, "policy"),
			run(2, "d2", "tool.pre", "gate <&>", 1, "deny"),
			shadow, skipped,
		},
		Messages: []*belay.Message{
			{Role: belay.RoleUser, Parts: []belay.Part{belay.Text("hello")}},
			{Role: belay.RoleAssistant, Step: 1, Parts: []belay.Part{{Type: belay.PartCall, Call: &belay.CallPart{Tool: "write"}}}},
			{Role: belay.RoleAssistant, Step: 2, Parts: []belay.Part{belay.Text("done")}},
		},
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	s := layout(recording())
	if len(s.rows) != 4 || s.rows[0].hook != "limits" || s.rows[1].phase != "tool.pre" {
		t.Errorf("rows = %v, want a row for each hook, those of a phase together", s.rows)
	}
	if len(s.columns) != 3 {
		t.Errorf("columns = %v, want one for each dispatch", s.columns)
	}
	if s.killed != 2 {
		t.Errorf("killed before column %d, want 2: between the dispatches before and after the kill", s.killed)
	}
	want := []step{{"before", "", 0, 1}, {"1", "write", 1, 2}, {"2", "answer", 2, 3}}
	for i, w := range want {
		if i >= len(s.steps) || s.steps[i] != w {
			t.Fatalf("steps = %v, want %v", s.steps, want)
		}
	}
	marks := map[mark]int{}
	for _, c := range s.cells {
		marks[c.mark]++
	}
	for _, m := range []mark{markAdded, markDenied, markShadow, markSkipped, markPassed} {
		if marks[m] != 1 {
			t.Errorf("%d runs are marked %q, want 1", marks[m], m)
		}
	}
}

func TestPictureIsSound(t *testing.T) {
	t.Parallel()
	svg := draw(recording())
	for decoder := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, svg)
		}
	}
	for _, want := range []string{"gate &lt;&amp;&gt;", "kill -9", "4 hooks on 2 phases, 5 runs"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture does not show %q", want)
		}
	}
	if strings.Contains(svg, "hello") {
		t.Error("the picture quotes what was said")
	}
	for _, l := range legend {
		if l.mark != markLater && !strings.Contains(svg, `class="`+string(l.mark)+`"`) {
			t.Errorf("the legend does not show the mark %q", l.mark)
		}
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), nil); err == nil {
		t.Error("without a file to write there is no error")
	}
}
