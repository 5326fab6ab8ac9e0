package demo_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/internal/demo"
)

// The tour shows what it says it shows. Times differ from run to run, so none
// is looked at.
func TestTour(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{ // in this order
		"hooks on 23 phases",
		"== Mistakes are found when installing, never in a turn",
		`"slow" on tool.pre: timeout: a deadline needs a timeout`,
		`no subscription "no-prodd" (did you mean "no-prod"?)`,
		"== Collect: contributions are typed and merged by one rule",
		"the key merges by min: 3",
		"git-status   branch main, 2 files changed\n    open-issues  issue 7: tidy the changelog\n",
		`a later phase sees the policy merged so far: "Change at most 3 files."`,
		"== Order: rewriters first, then after and before, then priority and id",
		"1.  clean-paths", "2.  no-prod", "3.  stricter-rule", "4.  virus-scan",
		"== Block: the model calls write",
		`clean-paths rewrote the input to {"path":"/srv/prod/db.yaml"}`,
		"deny: production is off limits in this session (by no-prod)",
		"tool.pre: no-prod won",
		"virus-scan", "not asked", "no-prod had stopped the phase (hook.skipped)",
		"== Time out: a hook that hangs is given up, and its fallback stands",
		"ask: the scanner did not answer in time (by virus-scan)",
		"diagnostic: hook.timeout virus-scan at tool.pre: no answer within 40ms",
		"== Rewrite: a result is redacted before the model sees it",
		`"token = key-4f1a9c" became "token = [REDACTED]"`,
		"== Background: work is queued with its record, and a worker takes it",
		"attempt 1 of learn: completed",
		"== Timeline: every run left a record",
		"turn.pre_policy", "friday-policy", "completed +policy",
		"skipped (shadow)",
		"audit:demo.denied",
		"completed +deny (shadow)",
		"timed_out +ask hook.timeout",
		"redact-keys",
		"backgrounded",
		"learn #1",
		"0 subscriptions are left",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("the tour does not show %q, or not in its place:\n%s", want, out.String())
			continue
		}
		rest = after
	}
	_, records, _ := strings.Cut(out.String(), "== Timeline")
	for _, said := range []string{"key-4f1a9c", "db.yaml", "changelog", "off limits"} {
		if strings.Contains(records, said) {
			t.Errorf("the timeline quotes %q of what was said", said)
		}
	}
}

// A tour that was called off ends with the cause and leaves nothing behind.
func TestTourHeedsItsContext(t *testing.T) {
	t.Parallel()
	calledOff := errors.New("called off")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(calledOff)
	var out bytes.Buffer
	if err := demo.Run(ctx, &out); !errors.Is(err, calledOff) {
		t.Errorf("the tour ends with %v, want the cause", err)
	}
	if strings.Contains(out.String(), "subscriptions are left") {
		t.Errorf("the tour went on to its end:\n%s", out.String())
	}
}

// A tour can be called off while it waits for something slow.
func TestTourCanBeCalledOff(t *testing.T) {
	t.Parallel()
	calledOff := errors.New("called off")
	ctx, cancel := context.WithCancelCause(t.Context())
	var out cancelling
	out.at, out.cancel = "== Time out", func() { cancel(calledOff) }
	if err := demo.Run(ctx, &out); !errors.Is(err, calledOff) {
		t.Errorf("the tour ends with %v, want the cause", err)
	}
	if strings.Contains(out.String(), "== Rewrite") {
		t.Errorf("the tour went on:\n%s", out.String())
	}
}

// cancelling is a writer that cancels when it is told something.
type cancelling struct {
	bytes.Buffer
	at     string
	cancel func()
}

func (c *cancelling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.at)) {
		c.cancel()
	}
	return c.Buffer.Write(p)
}

func TestTourTellsThatItCannotWrite(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken on purpose")
	if err := demo.Run(t.Context(), writerFunc(func([]byte) (int, error) { return 0, broken })); !errors.Is(err, broken) {
		t.Errorf("the tour ends with %v, want the writer's error", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
