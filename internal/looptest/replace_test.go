package looptest_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
)

// closing is a subsystem that counts how often it is closed.
type closing struct {
	subsystem
	closed int
}

func (c *closing) Close(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *closing) times() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// only returns a function that returns err for the agent with these instructions, and nil
// for others.
func only(instructions string, err error) func(belay.AgentConfig) error {
	return func(c belay.AgentConfig) error {
		if c.Instructions == instructions {
			return err
		}
		return nil
	}
}

// called returns options of an agent named "a".
func called(instructions string, extensions ...belay.Extension) *belay.Options {
	return &belay.Options{Name: "a", Instructions: instructions, Extensions: extensions}
}

// oldAgent makes the agent that a test replaces.
func oldAgent(t *testing.T, extensions ...belay.Extension) *belay.Agent {
	t.Helper()
	a, err := belay.New(belaytest.Script(belaytest.Says("hello"), belaytest.Says("again")), called("old", extensions...))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// replace replaces an agent with one that has the instructions "new".
func replace(ctx context.Context, old *belay.Agent, extensions ...belay.Extension) (*belay.Agent, error) {
	return old.Replace(ctx, belaytest.Script(belaytest.Says("hello"), belaytest.Says("again")), called("new", extensions...))
}

// usable checks that an agent can run a turn, or cannot if want is false.
func usable(t *testing.T, a *belay.Agent, want bool) {
	t.Helper()
	_, err := a.Session("s").Turn(t.Context(), "hello")
	if want && err != nil {
		t.Errorf("the agent takes no turn: %v", err)
	}
	if !want && !errors.Is(err, belay.ErrClosed) {
		t.Errorf("a turn of the agent: %v, want ErrClosed", err)
	}
}

// SPEC E-05
func TestReplace(t *testing.T) {
	t.Parallel()
	ext := &subsystem{name: "one"}
	old := oldAgent(t, ext)
	next, err := replace(t.Context(), old, ext)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "the calls of the extension", ext.log(), "register a, unregister a, register a")
	usable(t, old, false)
	usable(t, next, true)
	if _, err := replace(t.Context(), old, ext); !errors.Is(err, belay.ErrClosed) {
		t.Errorf("replacing a closed agent: %v", err)
	}
	if _, err := next.Replace(t.Context(), nil, called("third", ext)); err == nil {
		t.Error("an agent without a model is made")
	}
	usable(t, next, true)
	if err := next.Close(t.Context()); err != nil || len(ext.have) != 0 {
		t.Errorf("closing: %v, registered %v", err, ext.have)
	}
}

// SPEC E-05
func TestReplaceWaitsForTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ext := &subsystem{name: "one"}
		begun, release := make(chan struct{}), make(chan struct{})
		var old *belay.Agent
		slow := belay.NewTool("slow", "waits", func(context.Context, struct{}) (string, error) {
			close(begun)
			<-release
			return "done", nil
		}, nil)
		below := childTool("below", belay.Child{Name: "below"}, func(ctx context.Context, _ *belay.Invocation) iter.Seq2[belay.Event, error] {
			return old.Session("below").Run(ctx, "go")
		})
		opts := called("old", ext)
		opts.Tools = []belay.Tool{slow, below}
		old, err := belay.New(belaytest.Script(belaytest.Calls("slow", `{}`), belaytest.Calls("below", `{}`), belaytest.Says("from below"), belaytest.Says("done"), belaytest.Says("later")), opts)
		if err != nil {
			t.Fatal(err)
		}
		var turn *belay.Turn
		var all sync.WaitGroup
		all.Go(func() { turn, err = old.Session("s").Turn(t.Context(), "go") })
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := replace(ctx, old, ext); err == nil || !strings.Contains(err.Error(), `session "s"`) {
				t.Errorf("the error is %v", err)
			}
		})
		synctest.Wait()
		wantEqual(t, "the calls of the extension while Replace waits", ext.log(), "register a")
		if _, err := old.Session("other").Turn(t.Context(), "hello"); !errors.Is(err, belay.ErrClosed) {
			t.Errorf("a turn began: %v", err)
		}
		if _, err := replace(t.Context(), old, ext); err == nil || !strings.Contains(err.Error(), "already being replaced") {
			t.Errorf("replacing it twice: %v", err)
		}
		cancel()
		synctest.Wait()
		var next *belay.Agent
		all.Go(func() {
			var err error
			if next, err = replace(t.Context(), old, ext); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(release)
		all.Wait()
		if err != nil || turn.Text != "done" {
			t.Errorf("the running turn ended with %+v, %v", turn, err)
		}
		wantEqual(t, "the calls of the extension", ext.log(), "register a, unregister a, register a")
		if err := next.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// SPEC E-05
func TestReplaceRollsBack(t *testing.T) {
	t.Parallel()
	one, two := &subsystem{name: "one"}, &subsystem{name: "two"}
	old := oldAgent(t, one, two)
	two.refuses = only("new", errors.New("no room"))
	if _, err := replace(t.Context(), old, one, two); err == nil || !strings.Contains(err.Error(), `extension "two": no room`) {
		t.Errorf("the error is %v", err)
	}
	wantEqual(t, "the calls of one", one.log(), "register a, unregister a, register a, unregister a, register a")
	wantEqual(t, "the calls of two", two.log(), "register a, unregister a, register a")
	usable(t, old, true)
	if err := old.Close(t.Context()); err != nil || len(one.have)+len(two.have) > 0 {
		t.Errorf("closing: %v, registered %v and %v", err, one.have, two.have)
	}
}

// SPEC E-05
func TestReplaceDoesNotRegisterAgainWhatStillKnowsTheAgent(t *testing.T) {
	t.Parallel()
	one, two := &subsystem{name: "one"}, &subsystem{name: "two"}
	old := oldAgent(t, one, two)
	two.stays = only("old", errors.New("it is locked"))
	if _, err := replace(t.Context(), old, one, two); err == nil || !strings.Contains(err.Error(), `extension "two": it is locked`) {
		t.Errorf("the error is %v", err)
	}
	wantEqual(t, "the calls of one", one.log(), "register a, unregister a, register a")
	wantEqual(t, "the calls of two", two.log(), "register a")
	usable(t, old, true)
	two.stays = nil
	if err := old.Close(t.Context()); err != nil || len(one.have)+len(two.have) > 0 {
		t.Errorf("closing: %v, registered %v and %v", err, one.have, two.have)
	}
}

// SPEC E-05
func TestReplaceClosesAnAgentThatItsExtensionsRefuse(t *testing.T) {
	t.Parallel()
	one, two := &closing{subsystem: subsystem{name: "one"}}, &subsystem{name: "two"}
	old := oldAgent(t, one, two)
	two.refuses = func(belay.AgentConfig) error { return errors.New("the disk is full") }
	if _, err := replace(t.Context(), old, one, two); err == nil || !strings.Contains(err.Error(), "was closed: extension \"two\": the disk is full") {
		t.Errorf("the error is %v", err)
	}
	if len(one.have)+len(two.have) > 0 || one.times() != 1 {
		t.Errorf("registered %v and %v, closed %d times", one.have, two.have, one.times())
	}
	usable(t, old, false)
}

// SPEC E-05
func TestCloseDuringReplace(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{"the new agent is made": nil, "the new agent is refused": errors.New("no room")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := &closing{subsystem: subsystem{name: "one"}}
			old := oldAgent(t, ext)
			ext.refuses = func(c belay.AgentConfig) error {
				if c.Instructions == "old" {
					t.Error("a closed agent is registered again")
				}
				if err := old.Close(t.Context()); err != nil {
					t.Error(err)
				}
				return refused
			}
			next, err := replace(t.Context(), old, ext)
			if !errors.Is(err, refused) {
				t.Errorf("the error is %v", err)
			}
			want := map[bool][2]int{true: {1, 0}, false: {0, 1}}[refused == nil]
			if got := [2]int{len(ext.have), ext.times()}; got != want {
				t.Errorf("registered and closed are %v, want %v", got, want)
			}
			if next != nil {
				if err := next.Close(t.Context()); err != nil || len(ext.have) > 0 || ext.times() != 1 {
					t.Errorf("closing: %v, registered %v, closed %d times", err, ext.have, ext.times())
				}
			}
		})
	}
}

// SPEC E-05
func TestReplaceClosesExtensionsThatTheNewAgentDoesNotHave(t *testing.T) {
	t.Parallel()
	both, own := &closing{subsystem: subsystem{name: "both"}}, &closing{subsystem: subsystem{name: "own"}}
	next, err := replace(t.Context(), oldAgent(t, both, own), both)
	if err != nil || both.times() != 0 || own.times() != 1 {
		t.Fatalf("replacing: %v, closed %d and %d times, want 0 and 1", err, both.times(), own.times())
	}
	if err := next.Close(t.Context()); err != nil || both.times() != 1 || own.times() != 1 {
		t.Errorf("closing: %v, closed %d and %d times, want 1 and 1", err, both.times(), own.times())
	}
}

// Close and Replace may run at the same time.
//
// SPEC E-05
func TestCloseAndReplaceAtTheSameTime(t *testing.T) {
	t.Parallel()
	for i := range 50 {
		ext := &closing{subsystem: subsystem{name: "one"}}
		if i%2 == 0 {
			ext.refuses = only("new", errors.New("no room"))
		}
		old := oldAgent(t, ext)
		var next *belay.Agent
		var all sync.WaitGroup
		all.Go(func() { next, _ = replace(t.Context(), old, ext) })
		all.Go(func() {
			if err := old.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		want := 0
		if next != nil {
			want = 1
		}
		if len(ext.have) != want {
			t.Fatalf("%d agents are registered, want %d", len(ext.have), want)
		}
		if next == nil {
			if ext.times() != 1 {
				t.Fatalf("the extension was closed %d times, want once", ext.times())
			}
			continue
		}
		if err := next.Close(t.Context()); err != nil || len(ext.have) > 0 || ext.times() == 0 || ext.times() > 2 { // twice if Close of the old agent ran before Replace
			t.Fatalf("closing: %v, registered %v, closed %d times", err, ext.have, ext.times())
		}
	}
}
