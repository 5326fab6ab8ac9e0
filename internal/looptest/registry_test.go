package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
)

// closing is a subsystem that is closed with its agent.
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

// only fails for the agent with these instructions.
func only(instructions string, err error) func(belay.AgentConfig) error {
	return func(c belay.AgentConfig) error {
		if c.Instructions == instructions {
			return err
		}
		return nil
	}
}

// called are the options of agent a.
func called(instructions string, extensions ...belay.Extension) *belay.Options {
	return &belay.Options{Name: "a", Instructions: instructions, Extensions: extensions}
}

func add(t *testing.T, r *belay.Registry, opts *belay.Options) *belay.Agent {
	t.Helper()
	a, err := r.Add(t.Context(), belaytest.Script(belaytest.Says("hello"), belaytest.Says("again")), opts)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// SPEC E-05
func TestRegistry(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	ext := &subsystem{name: "one"}
	opts := func(instructions string) *belay.Options {
		return &belay.Options{Name: "a", Instructions: instructions, Extensions: []belay.Extension{ext}}
	}
	first, err := r.Add(t.Context(), belaytest.Script(), opts("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(t.Context(), belaytest.Script(), opts("again")); !errors.Is(err, belay.ErrExists) {
		t.Errorf("adding twice: %v", err)
	}
	second, err := r.Replace(t.Context(), belaytest.Script(), opts("second"))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Lookup("a"); got != second || got == first {
		t.Error("the old one is still there")
	}
	if got := ext.log(); got != "register a, unregister a, register a" {
		t.Errorf("told: %s", got)
	}
	ext.refuses = func(c belay.AgentConfig) error {
		if c.Instructions == "third" {
			return errors.New("no room")
		}
		return nil
	}
	if _, err := r.Replace(t.Context(), belaytest.Script(belaytest.Says("hi")), opts("third")); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("the error is %v", err)
	}
	if got, _ := r.Lookup("a"); got != second || len(ext.have) != 1 {
		t.Errorf("the old one is gone though the new one was not made: registered are %v", ext.have)
	}
	if err := r.Remove(t.Context(), "b"); !errors.Is(err, belay.ErrNotFound) {
		t.Errorf("removing what is not there: %v", err)
	}
	if err := r.Close(t.Context()); err != nil || len(r.Names()) != 0 || len(ext.have) != 0 {
		t.Errorf("closing: %v, left %v, registered %v", err, r.Names(), ext.have)
	}
}

// Whoever finds an agent finds one that its extensions know of, while another takes its
// place too.
//
// SPEC E-05
func TestReplacingIsNotSeenHalfDone(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	ext := &subsystem{name: "one"}
	unseen := func(c belay.AgentConfig) error {
		if _, ok := r.Lookup("a"); ok {
			t.Errorf("a is found while its extension hears of %s", c.Instructions)
		}
		return nil
	}
	ext.refuses, ext.stays = unseen, unseen
	old := add(t, &r, called("old", ext))
	next, err := r.Replace(t.Context(), belaytest.Script(belaytest.Says("hello")), called("new", ext))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Lookup("a"); got != next {
		t.Error("the new one is not found")
	}
	if _, err := old.Session("s").Turn(t.Context(), "hello"); !errors.Is(err, belay.ErrClosed) {
		t.Errorf("the old one takes a turn: %v", err)
	}
	if _, err := next.Session("s").Turn(t.Context(), "hello"); err != nil {
		t.Error(err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// SPEC E-05
func TestReplacingWaitsForTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r belay.Registry
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
		old, err := r.Add(t.Context(), belaytest.Script(belaytest.Calls("slow", `{}`), belaytest.Calls("below", `{}`), belaytest.Says("from below"), belaytest.Says("done"), belaytest.Says("later")), opts)
		if err != nil {
			t.Fatal(err)
		}
		var turn *belay.Turn
		var all sync.WaitGroup
		all.Go(func() { turn, err = old.Session("s").Turn(t.Context(), "go") })
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if _, err := r.Replace(ctx, belaytest.Script(), called("new", ext)); err == nil || !strings.Contains(err.Error(), `session "s" is taking a turn`) {
				t.Errorf("the error is %v", err)
			}
		})
		synctest.Wait()
		if _, ok := r.Lookup("a"); ok || ext.log() != "register a" {
			t.Errorf("while it is waited for a is found: %t; told %s", ok, ext.log())
		}
		if _, err := old.Session("other").Turn(t.Context(), "hello"); !errors.Is(err, belay.ErrClosed) {
			t.Errorf("a turn began: %v", err)
		}
		cancel()
		synctest.Wait()
		if got, _ := r.Lookup("a"); got != old {
			t.Error("the old one is not put back")
		}
		all.Go(func() {
			if _, err := r.Replace(t.Context(), belaytest.Script(), called("new", ext)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(release)
		all.Wait()
		if err != nil || turn.Text != "done" {
			t.Errorf("the turn under way ended with %+v, %v", turn, err)
		}
		if got := ext.log(); got != "register a, unregister a, register a" {
			t.Errorf("told %s", got)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// SPEC E-05
func TestAnAgentThatIsNotReplacedIsPutBack(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	one, two := &subsystem{name: "one"}, &subsystem{name: "two"}
	old := add(t, &r, called("old", one, two))
	two.refuses = only("new", errors.New("no room"))
	if _, err := r.Replace(t.Context(), belaytest.Script(), called("new", one, two)); err == nil || !strings.Contains(err.Error(), `extension "two": no room`) {
		t.Errorf("the error is %v", err)
	}
	wantEqual(t, "what one was told", one.log(), "register a, unregister a, register a, unregister a, register a")
	wantEqual(t, "what two was told", two.log(), "register a, unregister a, register a")
	if got, _ := r.Lookup("a"); got != old {
		t.Error("the old one is not found")
	}
	if _, err := old.Session("s").Turn(t.Context(), "hello"); err != nil {
		t.Errorf("the old one takes no turn: %v", err)
	}
	if err := r.Close(t.Context()); err != nil || len(one.have)+len(two.have) > 0 {
		t.Errorf("closing: %v, registered %v and %v", err, one.have, two.have)
	}
}

// SPEC E-05
func TestAnExtensionThatKeepsAnAgentIsNotToldAgain(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	one, two := &subsystem{name: "one"}, &subsystem{name: "two"}
	old := add(t, &r, called("old", one, two))
	two.stays = only("old", errors.New("it is locked"))
	if _, err := r.Replace(t.Context(), belaytest.Script(), called("new", one, two)); err == nil || !strings.Contains(err.Error(), `extension "two": it is locked`) {
		t.Errorf("the error is %v", err)
	}
	wantEqual(t, "what one was told", one.log(), "register a, unregister a, register a")
	wantEqual(t, "what two was told", two.log(), "register a")
	if got, _ := r.Lookup("a"); got != old {
		t.Error("the old one is not found")
	}
	two.stays = nil
	if err := r.Close(t.Context()); err != nil || len(one.have)+len(two.have) > 0 {
		t.Errorf("closing: %v, registered %v and %v", err, one.have, two.have)
	}
}

// SPEC E-05
func TestAnAgentThatCannotBePutBackIsGone(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	one, two := &closing{subsystem: subsystem{name: "one"}}, &subsystem{name: "two"}
	old := add(t, &r, called("old", one, two))
	two.refuses = func(belay.AgentConfig) error { return errors.New("the disk is full") }
	if _, err := r.Replace(t.Context(), belaytest.Script(), called("new", one, two)); err == nil || !strings.Contains(err.Error(), "the old one cannot be put back, and is closed: extension \"two\": the disk is full") {
		t.Errorf("the error is %v", err)
	}
	if _, ok := r.Lookup("a"); ok || len(one.have)+len(two.have) > 0 || one.times() != 1 {
		t.Errorf("found: %t, registered %v and %v, closed %d times", ok, one.have, two.have, one.times())
	}
	if _, err := old.Session("s").Turn(t.Context(), "hello"); !errors.Is(err, belay.ErrClosed) {
		t.Errorf("it takes a turn: %v", err)
	}
}

// SPEC E-05
func TestAnAgentThatIsClosedWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{"by one that is made": nil, "by one that is not made": errors.New("no room")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r belay.Registry
			ext := &closing{subsystem: subsystem{name: "one"}}
			old := add(t, &r, called("old", ext))
			ext.refuses = func(c belay.AgentConfig) error {
				if c.Instructions == "old" {
					t.Error("a closed agent is registered again")
				}
				if err := old.Close(t.Context()); err != nil {
					t.Error(err)
				}
				return refused
			}
			_, err := r.Replace(t.Context(), belaytest.Script(), called("new", ext))
			if !errors.Is(err, refused) {
				t.Errorf("the error is %v", err)
			}
			want := map[bool][3]int{true: {1, 1, 0}, false: {0, 0, 1}}[refused == nil]
			if got := [3]int{len(r.Names()), len(ext.have), ext.times()}; got != want {
				t.Errorf("found, registered and closed are %v, want %v", got, want)
			}
			if err := r.Close(t.Context()); err != nil || len(ext.have) > 0 || ext.times() != 1 {
				t.Errorf("closing: %v, registered %v, closed %d times", err, ext.have, ext.times())
			}
		})
	}
}

// SPEC E-05
func TestAnAgentThatIsClosedIsFoundNoMore(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	ext := &subsystem{name: "one"}
	ext.stays = func(belay.AgentConfig) error {
		if _, ok := r.Lookup("a"); ok {
			t.Error("it is found when its extension hears that it is gone")
		}
		return nil
	}
	first := add(t, &r, called("first", ext))
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Lookup("a"); ok {
		t.Error("it is found")
	}
	second := add(t, &r, called("second", ext))
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got, _ := r.Lookup("a"); got != second {
		t.Error("closing the first again takes the second out")
	}
	if err := r.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// SPEC E-05
func TestReplacingClosesWhatTheNewOneDoesNotHave(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	both, own := &closing{subsystem: subsystem{name: "both"}}, &closing{subsystem: subsystem{name: "own"}}
	add(t, &r, called("old", both, own))
	if _, err := r.Replace(t.Context(), belaytest.Script(), called("new", both)); err != nil || both.times() != 0 || own.times() != 1 {
		t.Errorf("replacing: %v, closed %d and %d times, want 0 and 1", err, both.times(), own.times())
	}
	if err := r.Close(t.Context()); err != nil || both.times() != 1 || own.times() != 1 {
		t.Errorf("closing: %v, closed %d and %d times, want 1 and 1", err, both.times(), own.times())
	}
}

// SPEC E-05
func TestANameIsChangedByOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r belay.Registry
		ext := &subsystem{name: "one"}
		release := make(chan struct{})
		var mu sync.Mutex
		at := 0
		ext.refuses = func(belay.AgentConfig) error {
			mu.Lock()
			at++
			mu.Unlock()
			<-release
			return nil
		}
		var all sync.WaitGroup
		failed := 0
		for range 2 {
			all.Go(func() {
				if _, err := r.Add(t.Context(), belaytest.Script(), called("", ext)); errors.Is(err, belay.ErrExists) {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		mu.Lock()
		if at != 1 {
			t.Errorf("%d agents of one name are being made", at)
		}
		mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Replace(ctx, belaytest.Script(), called("", ext)); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting for the name: %v", err)
		}
		close(release)
		all.Wait()
		if failed != 1 || len(ext.have) != 1 {
			t.Errorf("%d failed, %d are registered", failed, len(ext.have))
		}
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// fickle fails for every fifth agent, and for some that go.
type fickle struct {
	subsystem
	t    *testing.T
	r    *belay.Registry
	asks int
	busy map[string]int // by name
}

// hear is told of an agent, which nobody finds meanwhile, and of no other of its name.
func (f *fickle) hear(name string, fails int) (err error) {
	f.mu.Lock()
	f.asks++
	if f.asks%fails == 0 {
		err = errors.New("not this one")
	}
	if f.busy[name]++; f.busy[name] > 1 {
		f.t.Errorf("two hear of %s at a time", name)
	}
	f.mu.Unlock()
	if _, ok := f.r.Lookup(name); ok {
		f.t.Errorf("%s is found while its extension hears of it", name)
	}
	runtime.Gosched()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy[name]--
	return err
}

// SPEC E-05
func TestAHundredRegistrationsAtATime(t *testing.T) {
	t.Parallel()
	var r belay.Registry
	ext := &fickle{subsystem: subsystem{name: "one"}, t: t, r: &r, busy: make(map[string]int)}
	ext.refuses = func(c belay.AgentConfig) error { return ext.hear(c.Name, 5) }
	ext.stays = func(c belay.AgentConfig) error { return ext.hear(c.Name, 7) }
	late := &subsystem{name: "two"}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			name := fmt.Sprintf("agent-%d", i%20)
			opts := &belay.Options{Name: name, Extensions: []belay.Extension{late, ext}}
			switch i / 20 {
			case 0, 1:
				_, _ = r.Add(t.Context(), belaytest.Script(), opts) // somebody may be faster, and some are refused
			case 2, 3:
				_, _ = r.Replace(t.Context(), belaytest.Script(), opts)
			default:
				_ = r.Remove(t.Context(), name)
			}
			if a, ok := r.Lookup(name); ok {
				a.Session("s") // it can be had
			}
		})
	}
	all.Wait()
	// Those who could not be told of an end are not told again of one that is closed; the
	// others know those agents that are found, and no more.
	if n := len(r.Names()); n == 0 || len(late.have) != n {
		t.Errorf("%d agents are found, %d are registered", n, len(late.have))
	}
	ext.stays = nil
	if err := r.Close(t.Context()); err != nil || len(late.have) != 0 || len(r.Names()) != 0 {
		t.Errorf("closing: %v, registered %v, found %v", err, late.have, r.Names())
	}
}

// Closing an agent and replacing it share what they know of its extensions.
//
// SPEC E-05
func TestClosingAndReplacingAtATime(t *testing.T) {
	t.Parallel()
	for i := range 50 {
		var r belay.Registry
		ext := &closing{subsystem: subsystem{name: "one"}}
		if i%2 == 0 {
			ext.refuses = only("new", errors.New("no room"))
		}
		old := add(t, &r, called("old", ext))
		var all sync.WaitGroup
		all.Go(func() { _, _ = r.Replace(t.Context(), belaytest.Script(), called("new", ext)) })
		all.Go(func() {
			if err := old.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		if n := len(r.Names()); len(ext.have) != n || n != i%2 {
			t.Fatalf("%d agents are found, %d are registered", n, len(ext.have))
		}
		if err := r.Close(t.Context()); err != nil || len(ext.have) > 0 || ext.times() == 0 || ext.times() > 1+i%2 { // an old one may be closed before it is replaced
			t.Fatalf("closing: %v, registered %v, closed %d times", err, ext.have, ext.times())
		}
	}
}
