package subagent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

// ledger is an extension that records the agents that use it.
type ledger struct {
	mu     sync.Mutex
	known  map[string]bool
	most   int
	closed int
}

func (*ledger) Name() string { return "ledger" }

func (l *ledger) Register(_ context.Context, agent belay.AgentConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[string]bool)
	}
	l.known[agent.ID] = true
	l.most = max(l.most, len(l.known))
	return nil
}

func (l *ledger) Unregister(_ context.Context, agent belay.AgentConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, agent.ID)
	return nil
}

func (l *ledger) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed++
	return nil
}

// want checks how many agents use the extension, and how often it was closed.
func (l *ledger) want(t *testing.T, when string, known, closed int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) != known || l.closed != closed {
		t.Errorf("%s: %d agents are registered and %d are closed, want %d and %d", when, len(l.known), l.closed, known, closed)
	}
}

// handingOver makes an agent that gives a task to the subagent kid. The test must close
// it.
func handingOver(t *testing.T, store belay.Store, extensions ...belay.Extension) *belay.Agent {
	t.Helper()
	a, err := belay.New(script(calls(invoke("kid", "go")), tells("parent")), &belay.Options{Store: store, Extensions: extensions})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func kidIsAsked(t *testing.T, a *belay.Agent, session string) {
	t.Helper()
	turn, err := belay.Await(a.Session(session).Run(t.Context(), "go"))
	if err != nil || !strings.Contains(turn.Text, `"content":"done"`) {
		t.Errorf("the turn is %+v, %v", turn, err)
	}
}

func closeAgent(t *testing.T, a *belay.Agent) {
	t.Helper()
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kid returns a subagent whose agent has the given extensions.
func kid(extensions ...belay.Extension) subagent.Subagent {
	return subagent.Subagent{Name: "kid", Factory: subagent.Agent(script(says("done")), &belay.Options{Extensions: extensions})}
}

// SPEC E-05
func TestChildrenAreClosedWithTheirParent(t *testing.T) {
	t.Parallel()
	var l ledger
	for i := range 3 { // one after the other, with the same extension in each child
		a := handingOver(t, memstore.New(nil), newExtension(t, nil, kid(&l)))
		kidIsAsked(t, a, "s")
		kidIsAsked(t, a, "again")
		l.want(t, "while its parent is there", 1, i)
		closeAgent(t, a)
		l.want(t, "after its parent", 0, i+1)
	}
	if l.most != 1 {
		t.Errorf("%d children were there at a time", l.most)
	}
}

// SPEC E-05
func TestChildrenStayWithTheLastParent(t *testing.T) {
	t.Parallel()
	for name, shared := range map[string]bool{"which has the extension too": true, "which has the factory too": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l ledger
			sub, store := kid(&l), memstore.New(nil)
			one := newExtension(t, nil, sub)
			two := one
			if !shared {
				two = newExtension(t, nil, sub)
			}
			first, second := handingOver(t, store, one), handingOver(t, store, two)
			kidIsAsked(t, first, "first")
			kidIsAsked(t, second, "second")
			l.want(t, "with both", 1, 0)
			closeAgent(t, first)
			l.want(t, "with one", 1, 0)
			kidIsAsked(t, second, "third")
			closeAgent(t, second)
			l.want(t, "with none", 0, 1)
			third := handingOver(t, store, two)
			kidIsAsked(t, third, "fourth") // a new child agent is made for this
			l.want(t, "with another", 1, 1)
			closeAgent(t, third)
			l.want(t, "in the end", 0, 2)
		})
	}
}

// A child may use the extension that made it. This does not keep the extension open.
//
// SPEC E-05
func TestAChildThatHasItsParentsExtension(t *testing.T) {
	t.Parallel()
	var l ledger
	subagents := newExtension(t, nil)
	if _, err := subagents.Add(kid(&l, subagents)); err != nil {
		t.Fatal(err)
	}
	a := handingOver(t, memstore.New(nil), subagents)
	kidIsAsked(t, a, "s")
	l.want(t, "while its parent is there", 1, 0)
	closeAgent(t, a)
	l.want(t, "after its parent", 0, 1)
}

// A child agent with another store replaces the earlier one and uses the same extensions.
// So the extensions stay open.
//
// SPEC E-05
func TestAChildThatIsReplacedIsUnregistered(t *testing.T) {
	t.Parallel()
	var l ledger
	subagents := newExtension(t, nil, kid(&l))
	first, second := handingOver(t, memstore.New(nil), subagents), handingOver(t, memstore.New(nil), subagents)
	kidIsAsked(t, first, "s")
	kidIsAsked(t, second, "s")
	l.want(t, "with another store", 1, 0)
	closeAgent(t, first)
	closeAgent(t, second)
	l.want(t, "in the end", 0, 1)
}

// If a child is replaced while it works, its task ends before the child is closed.
//
// SPEC E-05
func TestAChildAtWorkIsReplacedLater(t *testing.T) {
	t.Parallel()
	var l ledger
	begun, release := make(chan struct{}), make(chan struct{})
	slow := belay.NewTool("slow", "waits", func(context.Context, struct{}) (string, error) {
		close(begun)
		<-release
		return "waited", nil
	}, nil)
	model := script(calls(call("slow", map[string]any{})), says("done"))
	sub := subagent.Subagent{Name: "kid", Factory: subagent.Agent(model, &belay.Options{Extensions: []belay.Extension{&l}, Tools: []belay.Tool{slow}})}
	subagents := newExtension(t, nil, sub)
	first := handingOver(t, memstore.New(nil), subagents)
	var all sync.WaitGroup
	all.Go(func() { kidIsAsked(t, first, "s") })
	<-begun
	other := memstore.New(nil)
	task := subagent.Task{Name: "kid", Session: "elsewhere", Store: other}
	runner, err := sub.Factory(t.Context(), &task)
	if err != nil {
		t.Fatal(err)
	}
	l.want(t, "while both work", 2, 0)
	close(release)
	all.Wait()
	l.want(t, "when the first is done", 1, 0)
	if err := runner.(subagent.CloseRunner).Close(t.Context()); err != nil {
		t.Error(err)
	}
	closeAgent(t, first)
	l.want(t, "in the end", 0, 1)
}

// If a child with several tasks is replaced, all its tasks end before the child is
// closed.
//
// SPEC E-05
func TestAChildWithTwoTasksIsReplacedAfterBoth(t *testing.T) {
	t.Parallel()
	var l ledger
	sub := kid(&l)
	here, elsewhere := memstore.New(nil), memstore.New(nil)
	run := func(session string, store belay.Store) (end func()) {
		runner, err := sub.Factory(t.Context(), &subagent.Task{Name: "kid", Session: session, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			t.Helper()
			if err := runner.(subagent.CloseRunner).Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	first, second, third := run("one", here), run("two", here), run("three", elsewhere)
	l.want(t, "while all work", 2, 0)
	first()
	l.want(t, "when one of two tasks is done", 2, 0)
	second()
	l.want(t, "when both are done", 1, 0)
	third()
	l.want(t, "in the end", 1, 0) // the extension is still in use
}

// SPEC E-06
func TestAChildKeepsToItsParentsResources(t *testing.T) {
	t.Parallel()
	var ran []string
	tool := func(name string) belay.Tool {
		return belay.NewTool(name, "for tests", func(context.Context, struct{}) (string, error) { ran = append(ran, name); return name, nil }, nil)
	}
	git := &gitTools{[]belay.Tool{tool("git_log"), tool("git_push")}}
	child := script(calls(call("git_push", map[string]any{})), calls(call("git_log", map[string]any{})), says("done"))
	sub := subagent.Subagent{Name: "kid", Factory: subagent.Agent(child, &belay.Options{Extensions: []belay.Extension{git}})}
	a := newAgent(t, script(calls(invoke("kid", "go")), says("ok")), &belay.Options{
		Store: memstore.New(nil), Extensions: []belay.Extension{git, newExtension(t, nil, sub)}, Resources: map[string][]string{"git": {"git_log"}},
	})
	take(t, a.Session("s").Run(t.Context(), "go"))
	if !slices.Equal(ran, []string{"git_log"}) {
		t.Errorf("the child ran %v", ran)
	}
}

type gitTools struct{ tools []belay.Tool }

func (*gitTools) Name() string          { return "git" }
func (g *gitTools) Tools() []belay.Tool { return g.tools }
