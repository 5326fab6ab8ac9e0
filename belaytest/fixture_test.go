package belaytest_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pretend replaces the testing.TB of a user's test. It records the failures.
type pretend struct {
	testing.TB

	ctx context.Context //nolint:containedctx // that of a test is in its testing.TB

	mu       sync.Mutex
	errors   []string
	cleanups []func()
}

func (p *pretend) Helper()                  {}
func (p *pretend) Context() context.Context { return p.ctx }

func (p *pretend) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cleanups = append(p.cleanups, f)
}

func (p *pretend) Errorf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errors = append(p.errors, fmt.Sprintf(format, args...))
}

func (p *pretend) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

func (p *pretend) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.errors) > 0
}

// failures runs a test to its end, like package testing, and returns the failures.
func failures(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &pretend{TB: t, ctx: ctx}
	done := make(chan struct{})
	go func() { // failures waits for this goroutine
		defer close(done)
		test(p)
	}()
	<-done
	cancel()
	for i := range p.cleanups {
		p.cleanups[len(p.cleanups)-1-i]()
	}
	return strings.Join(p.errors, "\n")
}

// wantFailure asserts that a failure contains these texts, in order. Without texts it
// asserts that there is no failure.
func wantFailure(t *testing.T, got string, says ...string) {
	t.Helper()
	if len(says) == 0 {
		if got != "" {
			t.Errorf("the test fails:\n%s", got)
		}
		return
	}
	rest := got
	for _, want := range says {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Errorf("the failure does not say %q, or not in its place:\n%s", want, got)
			return
		}
		rest = after
	}
}

type pathInput struct {
	Path string `json:"path"`
}

// cleanPaths rewrites paths that are not clean.
var cleanPaths = belay.ToolPre.On("clean-paths", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in pathInput
	if err := call.Decode(&in); err != nil || in.Path == "" || path.Clean(in.Path) == in.Path {
		return belay.Pass, err
	}
	return belay.RewriteInput(pathInput{path.Clean(in.Path)})
}, &hook.Options{Capabilities: hook.CanRewriteInput})

// noProd denies writes to production.
var noProd = belay.ToolPre.On("no-prod", func(_ context.Context, call belay.ToolCall) (belay.ToolVerdict, error) {
	var in pathInput
	if err := call.Decode(&in); err != nil {
		return belay.Pass, err
	}
	if strings.HasPrefix(in.Path, "/srv/prod/") {
		return belay.Deny("production is off limits"), nil
	}
	return belay.Pass, nil
}, &hook.Options{Match: hook.Match{Tools: []string{"write"}}})

// after is a gate that runs after noProd. The runtime does not call it if noProd denies.
var after = belay.ToolPre.On("after", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) {
	return belay.Pass, nil
}, &hook.Options{After: []string{"no-prod"}, Match: hook.Match{Tools: []string{"write"}}})

// friday returns two hooks: one adds a reminder, and one always fails at the end of the
// turn.
func friday() []hook.Subscription {
	return []hook.Subscription{
		belay.UserPromptSubmit.On("friday", func(context.Context, belay.UserPrompt) (belay.PromptVerdict, error) {
			return belay.PromptVerdict{Aside: belay.Aside{Context: []belay.Reminder{{Text: "It is Friday."}}}}, nil
		}, nil),
		belay.TurnPostTurn.On("broken", func(context.Context, belay.TurnEnded) (belay.Note, error) {
			return belay.Note{}, errors.New("no disk")
		}, nil),
	}
}

// conversation runs a turn with every kind of content.
func conversation(t testing.TB) (*belaytest.Agent, *belaytest.Turn) {
	t.Helper()
	lost := belaytest.NewTool("lost")
	lost.Answer = func(context.Context, *belay.Invocation, int) (belay.Result, error) {
		return belay.Result{}, errors.New("nothing there")
	}
	agent := belaytest.New(t, belaytest.Script(
		belaytest.Calls("read", `{"path": "docs/../notes.md"}`),
		belaytest.Calls("write", `{"path": "/srv/prod/notes.md"}`),
		belaytest.Calls("lost", nil),
		belaytest.Says("Buy milk."),
	), &belay.Options{
		Instructions: "Be careful.",
		Tools:        []belay.Tool{belaytest.NewTool("read", "milk\neggs"), belaytest.NewTool("write"), lost},
		Hooks:        append(friday(), cleanPaths, noProd, after),
	})
	turn := agent.Say("what is to do?")
	return agent, turn
}
