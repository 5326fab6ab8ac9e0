package timeline_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/internal/timeline"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// ran returns a run that began some time after noon.
func ran(phase, who string, state hook.State, after, took time.Duration) hook.Run {
	return hook.Run{Phase: phase, Subscription: who, State: state, Started: noon.Add(after), Latency: hook.Latency(took)}
}

// SPEC J-01
func TestTimeline(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	attempt := ran("turn.post_turn", "learn", hook.Completed, 39*ms, ms)
	attempt.Attempt = 1
	attempt.Audit = []hook.Audit{{Code: "demo.learned"}}
	job := ran("turn.post_turn", "learn", hook.Failed, 38*ms, 0)
	job.JobHandler, job.Attempt, job.Class = "reindex", 2, codes.Error
	shadow := ran("tool.pre", "try-out", hook.Completed, 0, 20*ms)
	shadow.Shadow, shadow.Contributed = true, []hook.Digest{{Kind: "deny"}, {Kind: "context"}}
	late := ran("tool.pre", "scan", hook.TimedOut, 10*ms, 30*ms)
	late.Class = codes.Timeout
	skipped := ran("tool.pre", "skipped", hook.Skipped, 20*ms, 0)
	skipped.Class = codes.Skipped

	for _, test := range []struct {
		rule string
		runs []hook.Run
		want []string
	}{
		{"nothing ran", nil, []string{"  nothing ran"}},
		{
			"one run fills the chart",
			[]hook.Run{ran("tool.pre", "no-prod", hook.Completed, 0, 1500*time.Microsecond)},
			[]string{
				"  tool.pre",
				"    no-prod " + strings.Repeat("█", 40) + "     1.5ms  completed",
				"            0                                       1.5ms",
			},
		},
		{
			"a latency is cut to what fits its column",
			[]hook.Run{ran("tool.pre", "scan", hook.TimedOut, 0, 100187913*time.Nanosecond)},
			[]string{
				"  tool.pre",
				"    scan " + strings.Repeat("▒", 40) + "  100.19ms  timed_out",
				"         0                                       100.188ms",
			},
		},
		{
			"a run that took no time has a bar of one column",
			[]hook.Run{ran("tool.pre", "a", hook.Completed, 0, 0)},
			[]string{
				"  tool.pre",
				"    a █" + strings.Repeat(" ", 39) + "        0s  completed",
				"      0                                       0s",
			},
		},
		{
			"runs are placed by when they began, whatever their order, and phases have headings",
			[]hook.Run{attempt, ran("tool.pre", "first", hook.Completed, 0, 10*ms), late, shadow, skipped, job},
			[]string{
				"  tool.pre",
				"    first      ██████████" + strings.Repeat(" ", 30) + "      10ms  completed",
				"    try-out    ████████████████████" + strings.Repeat(" ", 20) + "      20ms  completed +deny +context (shadow)",
				"    scan       " + strings.Repeat(" ", 10) + strings.Repeat("▒", 30) + "      30ms  timed_out hook.timeout",
				"    skipped    " + strings.Repeat(" ", 20) + "·" + strings.Repeat(" ", 19) + "         -  skipped",
				"  turn.post_turn",
				"    reindex #2 " + strings.Repeat(" ", 38) + "▓ " + "        0s  failed hook.error",
				"    learn #1   " + strings.Repeat(" ", 39) + "█" + "       1ms  completed audit:demo.learned",
				"               0                                       40ms",
			},
		},
		{
			"what begins at the very end is still drawn, each state with its mark",
			[]hook.Run{
				ran("p", "a", hook.Started, 0, 40*ms), ran("p", "b", hook.Backgrounded, 40*ms, 0), ran("p", "c", hook.Interrupted, 40*ms, 0),
			},
			[]string{
				"  p",
				"    a " + strings.Repeat("░", 40) + "      40ms  started",
				"    b " + strings.Repeat(" ", 39) + "→         -  backgrounded",
				"    c " + strings.Repeat(" ", 39) + "▓        0s  interrupted",
				"      0                                       40ms",
			},
		},
		{
			"a phase that comes back has a heading again",
			[]hook.Run{ran("p", "a", hook.Completed, 0, 0), ran("q", "b", hook.Completed, 1, 0), ran("p", "a", hook.Completed, 2, 2)},
			[]string{
				"  p",
				"    a █" + strings.Repeat(" ", 39) + "        0s  completed",
				"  q",
				"    b " + strings.Repeat(" ", 10) + "█" + strings.Repeat(" ", 29) + "        0s  completed",
				"  p",
				"    a " + strings.Repeat(" ", 20) + strings.Repeat("█", 20) + "        0s  completed",
				"      0                                       0s",
			},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			if err := timeline.Write(&b, test.runs); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A mark is drawn between the runs before and after it. After the mark, the heading of the
// phase is repeated. A mark without later runs is not drawn.
func TestTimelineMarks(t *testing.T) {
	t.Parallel()
	runs := []hook.Run{ran("p", "after", hook.Completed, 2, 0), ran("p", "before", hook.Completed, 0, 0)}
	var b strings.Builder
	if err := timeline.Write(&b, runs, timeline.Mark{At: noon.Add(1), Text: "killed"}, timeline.Mark{At: noon.Add(3), Text: "never"}); err != nil {
		t.Fatal(err)
	}
	var begins []string
	for line := range strings.Lines(b.String()) {
		begins = append(begins, strings.TrimRight(line[:min(len(line), 16)], " █\n"))
	}
	want := []string{"  p", "    before", "  ---- killed --", "  p", "    after", "           0"}
	for i, w := range want {
		if i >= len(begins) || !strings.HasPrefix(begins[i], w) {
			t.Fatalf("line %d is not %q:\n%s", i, w, b.String())
		}
	}
}

// All bars have the same width, whatever the times are. Drawing does not change the runs.
func TestTimelineBarsAlign(t *testing.T) {
	t.Parallel()
	runs := []hook.Run{
		ran("p", "later", hook.Completed, time.Hour, time.Hour),
		ran("p", "early", hook.Completed, 0, 100*365*24*time.Hour),
		ran("p", "negative", hook.Completed, 0, -time.Hour),
		ran("p", "before", hook.Completed, -50*365*24*time.Hour, 1),
	}
	var b strings.Builder
	if err := timeline.Write(&b, runs); err != nil {
		t.Fatal(err)
	}
	if runs[0].Subscription != "later" {
		t.Error("the caller's runs were sorted")
	}
	for line := range strings.Lines(b.String()) {
		if !strings.Contains(line, "completed") {
			continue
		}
		head, _, _ := strings.Cut(line, "  completed")
		if got, least := utf8.RuneCountInString(head), 4+len("negative")+1+timeline.Width+1; got < least {
			t.Errorf("the line is %d columns wide before the remark, want at least %d: %q", got, least, line)
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken on purpose")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestTimelineTellsThatItCannotWrite(t *testing.T) {
	t.Parallel()
	for _, runs := range [][]hook.Run{nil, {ran("p", "a", hook.Completed, 0, 1)}} {
		if err := timeline.Write(brokenWriter{}, runs); !errors.Is(err, errBroken) {
			t.Errorf("the error is %v", err)
		}
	}
}
