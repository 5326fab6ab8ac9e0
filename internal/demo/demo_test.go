package demo_test

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay/internal/demo"
	"github.com/belay-run/belay/sandbox"
)

// Without a durable store, the turn of the tour runs to its end in one process. The test of
// package whole compares every line of the turn.
func TestTourInMemory(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := demo.Run(t.Context(), &out, demo.Options{}); err != nil {
		t.Fatal(err)
	}
	rest := out.String()
	for _, want := range []string{ // in this order
		"14 hooks on 8 of the 23 phases",
		"== Mistakes in hooks are found when they are installed",
		"denied    write: Denied by \"stay-inside\"",
		"asked     may write run? the scanner did not answer in time",
		"Blocked by hook \"definition-of-done\"",
		"result    write: 12 bytes written",
		"model     CHANGELOG.md and NEWS.md are ready for release 1.2.",
		"end       end_turn after 7 steps",
		"== Why was the write denied?", "tool.pre: stay-inside won",
		"== A hook hung.", "hook.timeout: no answer within 100ms",
		"== After the hooks, every call must pass the floor",
		"== What users type:", "subagent  reviewer ends: success",
		"== Background:", "attempt 1 of learn: completed",
		"== Transcript:",
		"== Timeline:", "learn #1",
		"Next: go run ./cmd/belay demo",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("the tour does not show %q, or not in its place:\n%s", want, out.String())
			continue
		}
		rest = after
	}
	for _, other := range []string{"killed", "key-4f1a9c"} {
		if strings.Contains(out.String(), other) {
			t.Errorf("the tour shows %q:\n%s", other, out.String())
		}
	}
}

// The README's first command must be compiled within a minute on a small machine. So it
// must not link what takes long to compile: the translated SQLite, CEL, the network.
//
// SPEC Q-02
func TestTourIsLight(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "../../cmd/belay-tour")
	list.Env = append(list.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	for _, p := range packages {
		switch {
		case p == "net/http", strings.HasPrefix(p, "modernc.org/"), strings.HasPrefix(p, "cel.dev/"), strings.HasPrefix(p, "github.com/riverqueue/"):
			t.Errorf("the tour links %s", p)
		}
	}
	if len(packages) < 100 || len(packages) > 190 {
		t.Errorf("the tour links %d packages: it had 169", len(packages))
	}
}

func TestMain(m *testing.M) {
	sandbox.Main() // the tour runs a program in the sandbox
	goleak.VerifyTestMain(m)
}
