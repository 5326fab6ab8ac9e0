package looptest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/belaytest"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
	"github.com/belay-run/belay/subagent"
)

func textTool(name string, f func(ctx context.Context) string) belay.Tool {
	return belay.NewRawTool(belay.ToolDeclaration{Name: name}, func(ctx context.Context, _ *belay.Invocation) (belay.Result, error) {
		return belay.Result{Text: f(ctx)}, nil
	}, nil)
}

func denying(id, toolName string, o *hook.Options) hook.Subscription {
	if o == nil {
		o = &hook.Options{}
	}
	o.Match = hook.Match{Tools: []string{toolName}}
	return belay.ToolPre.On(id, func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Deny("gate"), nil }, o)
}

type lateExt struct {
	name   string
	tools  []belay.Tool
	hooks  []hook.Subscription
	step   func() []belay.Tool
	unreg  func() error
	reg    func() error
	build  func(*belay.AgentConfig)
	mu     sync.Mutex
	log    []string
	closed atomic.Bool
	ended  chan struct{}
}

func (e *lateExt) Name() string               { return e.name }
func (e *lateExt) Tools() []belay.Tool        { return e.tools }
func (e *lateExt) Hooks() []hook.Subscription { return e.hooks }
func (e *lateExt) StepTools(string) []belay.Tool {
	if e.step == nil {
		return nil
	}
	return e.step()
}
func (e *lateExt) note(s string) { e.mu.Lock(); e.log = append(e.log, s); e.mu.Unlock() }
func (e *lateExt) told() string  { e.mu.Lock(); defer e.mu.Unlock(); return strings.Join(e.log, ",") }

func (e *lateExt) Register(context.Context, belay.AgentConfig) error {
	e.note("reg")
	if e.reg != nil {
		return e.reg()
	}
	return nil
}

func (e *lateExt) Unregister(context.Context, belay.AgentConfig) error {
	e.note("unreg")
	if e.unreg != nil {
		return e.unreg()
	}
	return nil
}

func (e *lateExt) Build(_ context.Context, c *belay.AgentConfig) error {
	if e.build != nil {
		e.build(c)
	}
	return nil
}
func (e *lateExt) Close(context.Context) error { e.closed.Store(true); return nil }
func (e *lateExt) Watch(_ context.Context, events iter.Seq2[belay.Event, error]) {
	if e.ended != nil {
		defer close(e.ended)
	}
	for range events {
	}
}

func noError[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(d): // f has not returned
		return false
	}
}

func TestToolsComeAfterTheirGates(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	a, err := belay.New(belaytest.Script(belaytest.Calls("danger", `{}`), belaytest.Says("x")), nil)
	noError(t, a, err)
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	e := &lateExt{name: "e", tools: []belay.Tool{textTool("danger", func(context.Context) string { ran.Add(1); return "boom" })}, hooks: []hook.Subscription{denying("g", "danger", nil)}}
	e.step = func() []belay.Tool { once.Do(func() { close(entered); <-release }); return nil }
	done := make(chan error, 1)
	go func() { _, err := a.Add(context.Background(), e); done <- err }()
	<-entered
	_, err = a.Session("s").Turn(t.Context(), "go")
	close(release)
	t.Log("turn", err, "add", <-done)
	if ran.Load() > 0 {
		t.Error("danger ran without its gate while Add was under way")
	}
}

// While a lease is being closed, its tool is removed before its gate.
//
// SPEC E-11
func TestToolsGoBeforeTheirGates(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	model := modelFunc(func(_ context.Context, req *belay.Request, yield func(belay.Chunk, error) bool) {
		part := belay.Text("done")
		if req.Messages[len(req.Messages)-1].Role == belay.RoleUser && req.Messages[len(req.Messages)-1].Kind == belay.KindUser {
			part = belay.Part{Type: belay.PartCall, Call: &belay.CallPart{ID: "c", Tool: "danger", Input: []byte(`{}`)}}
		}
		yield(belay.Chunk{Response: &belay.Response{Parts: []belay.Part{part}}}, nil)
	})
	a := agentOf(t, model, nil)
	var changing sync.WaitGroup
	changing.Go(func() {
		for range 50 {
			e := &lateExt{name: "e", tools: []belay.Tool{textTool("danger", func(context.Context) string { ran.Add(1); return "boom" })}, hooks: []hook.Subscription{denying("g", "danger", nil)}}
			_ = leased(t)(a.Add(t.Context(), e)).Close()
		}
	})
	for i := range 100 {
		if _, err := a.Session(fmt.Sprint(i)).Turn(t.Context(), "go"); err != nil {
			t.Error(err)
		}
	}
	changing.Wait()
	if ran.Load() > 0 {
		t.Errorf("the tool ran %d times without its gate", ran.Load())
	}
}

func leased(t *testing.T) func(*belay.Lease, error) *belay.Lease {
	return func(l *belay.Lease, err error) *belay.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestAddDuringClose(t *testing.T) {
	t.Parallel()
	a, err := belay.New(belaytest.Script(), nil)
	noError(t, a, err)
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	e := &lateExt{name: "e", ended: make(chan struct{})}
	e.step = func() []belay.Tool { once.Do(func() { close(entered); <-release }); return nil }
	done := make(chan error, 1)
	var lease *belay.Lease
	go func() { l, err := a.Add(context.Background(), e); lease = l; done <- err }()
	<-entered
	closeErr := a.Close(t.Context())
	close(release)
	addErr := <-done
	if lease != nil {
		_ = lease.Close()
	}
	_ = a.Close(t.Context())
	if closeErr != nil || !errors.Is(addErr, belay.ErrClosed) || e.told() != "" {
		t.Errorf("Close: %v, Add: %v, the extension got the calls %q", closeErr, addErr, e.told())
	}
}

func TestRemovalThatOthersDependOn(t *testing.T) {
	t.Parallel()
	a, err := belay.New(belaytest.Script(), nil)
	noError(t, a, err)
	mk := func() *lateExt { return &lateExt{name: "A", hooks: []hook.Subscription{denying("a.gate", "x", nil)}} }
	A, B := mk(), &lateExt{name: "B", hooks: []hook.Subscription{denying("b.gate", "x", &hook.Options{After: []string{"a.gate"}})}}
	la := leased(t)(a.Add(t.Context(), A))
	lb := leased(t)(a.Add(t.Context(), B))
	e1, e2, e3 := la.Close(), lb.Close(), la.Close()
	p, _ := a.Hooks().Plan("tool.pre")
	_, again := a.Add(t.Context(), mk())
	if len(p.Entries) > 0 {
		t.Errorf("closes=%v %v %v, left=%v told A=%q; adding A again: %v", e1, e2, e3, p.Entries[0].ID, A.told(), again)
	}
}

func TestExtensionsThatManageOthers(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"lease", "replace", "register adds"} {
		a, err := belay.New(belaytest.Script(), nil)
		noError(t, a, err)
		m := &lateExt{name: "manager"}
		var sub *belay.Lease
		m.unreg = func() error {
			if sub != nil {
				return sub.Close()
			}
			return nil
		}
		if how == "register adds" {
			m.reg = func() (err error) { sub, err = a.Add(context.Background(), &lateExt{name: "plugin"}); return err }
		}
		ok := within(time.Minute, func() {
			lease, err := a.Add(context.Background(), m)
			if err != nil {
				t.Log(err)
				return
			}
			if how != "register adds" {
				sub, _ = a.Add(context.Background(), &lateExt{name: "plugin"})
			}
			if how == "replace" {
				_, err := a.Replace(context.Background(), belaytest.Script(), nil)
				t.Log("replace", err)
				return
			}
			_ = lease.Close()
		})
		if !ok {
			t.Errorf("deadlock: %s", how)
		}
	}
}

func TestUnregisterThatFailsIsRetried(t *testing.T) {
	t.Parallel()
	a, err := belay.New(belaytest.Script(), nil)
	noError(t, a, err)
	e := &lateExt{name: "e"}
	fails := true
	e.unreg = func() error {
		if fails {
			return errors.New("busy")
		}
		return nil
	}
	l := leased(t)(a.Add(t.Context(), e))
	err1 := l.Close()
	fails = false
	err2 := a.Close(t.Context())
	if e.told() != "reg,unreg,unreg" || err1 == nil || err2 != nil {
		t.Errorf("the extension got the calls %q; the lease: %v, the agent: %v", e.told(), err1, err2)
	}
}

type lateNarrower struct {
	lateExt
	allow []string
}

func (n *lateNarrower) Narrow(belay.AgentConfig, []string) ([]string, string) { return n.allow, "" }

func TestChildrenStayLimitedWhenExtensionsChange(t *testing.T) {
	t.Parallel()
	for _, change := range []bool{false, true} {
		var ran atomic.Int32
		var lease *belay.Lease
		srv := &lateNarrower{lateExt: lateExt{name: "srv"}, allow: []string{"ok"}}
		tools := []belay.Tool{textTool("ok", func(context.Context) string { return "" }), textTool("danger", func(context.Context) string { return "" })}
		srv.step = func() []belay.Tool { return tools }
		subs, err := subagent.New(nil)
		noError(t, subs, err)
		swap := textTool("swap", func(context.Context) string {
			if change {
				_ = lease.Close()
			}
			return "swapped"
		})
		danger := textTool("danger", func(context.Context) string { ran.Add(1); return "boom" })
		_, err = subs.Add(subagent.Subagent{Name: "kid", Factory: subagent.Agent(
			belaytest.Script(belaytest.Calls("swap", `{}`), belaytest.Calls("danger", `{}`), belaytest.Says("kid done")),
			&belay.Options{Tools: []belay.Tool{swap, danger}})})
		noError(t, 0, err)
		a, err := belay.New(belaytest.Script(belaytest.Calls("invoke_subagent", `{"name":"kid","prompt":"go"}`), belaytest.Says("done")),
			&belay.Options{Extensions: []belay.Extension{srv, subs}, Resources: map[string][]string{"srv": {"ok"}}})
		noError(t, a, err)
		lease = leased(t)(a.Add(t.Context(), &lateExt{name: "other"}))
		_, err = a.Session("s").Turn(t.Context(), "go")
		t.Logf("change=%t err=%v ran=%d", change, err, ran.Load())
		if change && ran.Load() > 0 {
			t.Error("after an unrelated lease was closed, the child ran a tool that its parent may not use")
		}
		if !change && ran.Load() > 0 {
			t.Error("control: ran without a change too")
		}
	}
}

type lateRouter struct{ lateExt }

func (r *lateRouter) Route(context.Context, *belay.Invocation) (belay.Result, error) {
	r.note("route")
	return belay.Result{Text: "routed"}, nil
}

func TestBundlesGoWithTheirExtension(t *testing.T) {
	t.Parallel()
	var lease *belay.Lease
	drop := textTool("drop", func(context.Context) string { _ = lease.Close(); return "dropped" })
	a, err := belay.New(belaytest.Script(belaytest.Calls("drop", `{}`), belaytest.Calls("routed", `{}`), belaytest.Says("x")), &belay.Options{Tools: []belay.Tool{drop}})
	noError(t, a, err)
	r := &lateRouter{lateExt: lateExt{name: "r"}}
	r.hooks = []hook.Subscription{belay.TurnPreToolMaterialization.On("bundle", func(context.Context, belay.TurnSoFar) (belay.ToolBundles, error) {
		return belay.ToolBundles{Bundles: []belay.ToolBundle{{ID: "b", Route: "r", Tools: []belay.ToolDeclaration{{Name: "routed"}}}}}, nil
	}, nil)}
	lease = leased(t)(a.Add(t.Context(), r))
	_, err = a.Session("s").Turn(t.Context(), "go")
	if strings.HasSuffix(r.told(), "route") {
		t.Errorf("%q, %v", r.told(), err)
	}
}

type reserves struct{}

func (reserves) Name() string                    { return "reserves" }
func (reserves) Resources() []string             { return []string{"srv"} }
func (reserves) For(belay.Reach) belay.Extension { return reserves{} }

func TestScopesAreReadAnew(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	tools := []belay.Tool{textTool("danger", func(context.Context) string { ran.Add(1); return "boom" })}
	srv := &lateNarrower{lateExt: lateExt{name: "srv"}, allow: []string{"*"}}
	srv.step = func() []belay.Tool { return tools }
	a, err := belay.New(belaytest.Script(belaytest.Says("x"), belaytest.Says("y"), belaytest.Calls("danger", `{}`), belaytest.Says("z")),
		&belay.Options{Extensions: []belay.Extension{reserves{}}, Resources: map[string][]string{"srv": {"a"}}})
	noError(t, a, err)
	l := leased(t)(a.Add(t.Context(), srv))
	_, _ = a.Session("s").Turn(t.Context(), "one")
	_ = l.Close()
	_, _ = a.Session("s").Turn(t.Context(), "two")
	srv.allow = []string{"nothing"}
	leased(t)(a.Add(t.Context(), srv))
	_, err = a.Session("s").Turn(t.Context(), "three")
	if ran.Load() > 0 {
		t.Error("the tool is in scope although Narrow excludes it now", err)
	}
}

// A detached hook can schedule a job while the agent is closing. The job still runs, and
// then the worker ends.
func TestJobsThatComeDuringClose(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"first", "second"} { // with a worker that already runs, and without one
		synctest.Test(t, func(t *testing.T) {
			var performed atomic.Int32
			release := make(chan struct{})
			hooks := []hook.Subscription{belay.TurnPostTurn.On("late", func(_ context.Context, in belay.TurnEnded) (belay.Note, error) {
				if in.UserText() != "first" {
					<-release
				}
				return belay.Note{Jobs: []hook.Job{{Handler: "work", Key: in.UserText()}}}, nil
			}, &hook.Options{Execution: hook.FireAndRecord, Timeout: time.Minute, Capabilities: hook.CanSchedule})}
			a, err := belay.New(belaytest.Script(belaytest.Says("x"), belaytest.Says("y")), &belay.Options{Hooks: hooks})
			noError(t, a, err)
			_, err = a.Hooks().InstallJobs(hook.JobHandler{Name: "work", Run: func(context.Context, hook.Job) ([]hook.Audit, error) {
				performed.Add(1)
				return nil, nil
			}})
			noError(t, 0, err)
			want := int32(0)
			for _, say := range []string{text, "last"} {
				if _, err := a.Session("s").Turn(t.Context(), say); err != nil {
					t.Fatal(err)
				}
				want++
			}
			closed := make(chan error, 1)
			go func() { closed <- a.Close(t.Context()) }()
			synctest.Wait()
			close(release)
			if err := <-closed; err != nil || performed.Load() != want {
				t.Errorf("%d of %d jobs were performed, %v", performed.Load(), want, err)
			}
		})
	}
}

func TestBackgroundWorkOfSubagents(t *testing.T) {
	t.Parallel()
	subs, err := subagent.New(nil)
	noError(t, subs, err)
	bg := belay.TurnPostTurn.On("learn", func(context.Context, belay.TurnEnded) (belay.Note, error) { return belay.Note{}, nil }, &hook.Options{Execution: hook.Background})
	_, err = subs.Add(subagent.Subagent{Name: "kid", Factory: subagent.Agent(belaytest.Script(belaytest.Says("kid done")), &belay.Options{Hooks: []hook.Subscription{bg}})})
	noError(t, 0, err)
	a, err := belay.New(belaytest.Script(belaytest.Calls("invoke_subagent", `{"name":"kid","prompt":"go"}`), belaytest.Says("done")), &belay.Options{Extensions: []belay.Extension{subs}})
	noError(t, a, err)
	for e, err := range a.Session("s").Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		if e.Result != nil && e.Result.IsError {
			t.Errorf("%s", e.Result.Text)
		}
	}
	_ = a.Close(t.Context())
}

type dyingStore struct {
	*memstore.Store
	dead atomic.Bool
}

func (d *dyingStore) Commit(ctx context.Context, c *belay.Commit) error {
	if d.dead.Load() {
		return belay.ErrFenced
	}
	if c.State != nil && c.State.Turn != nil && c.State.Turn.Unjudged {
		d.dead.Store(true)
	}
	return d.Store.Commit(ctx, c)
}

func TestResumedCallsHaveNewGates(t *testing.T) {
	t.Parallel()
	store := &dyingStore{Store: memstore.New(nil)}
	slow := belay.ToolPre.On("slow", func(context.Context, belay.ToolCall) (belay.ToolVerdict, error) { return belay.Pass, nil }, &hook.Options{Execution: hook.Deadline, Timeout: time.Minute})
	first, err := belay.New(belaytest.Script(belaytest.Calls("danger", `{}`)), &belay.Options{Store: store, Hooks: []hook.Subscription{slow}, Tools: []belay.Tool{textTool("danger", func(context.Context) string { return "" })}})
	noError(t, first, err)
	_, err = first.Session("s").Turn(t.Context(), "go")
	t.Log("first", err)
	store.dead.Store(false)
	_ = first.Close(t.Context())

	var ran atomic.Int32
	var second *belay.Agent
	e := &lateExt{name: "e", tools: []belay.Tool{textTool("danger", func(context.Context) string { ran.Add(1); return "boom" })}, hooks: []hook.Subscription{denying("g", "danger", nil)}}
	start := belay.SessionStart.On("load", func(ctx context.Context, _ belay.SessionOpened) (belay.Aside, error) {
		_, err := second.Add(ctx, e)
		return belay.Aside{}, err
	}, nil)
	second, err = belay.New(belaytest.Script(belaytest.Says("x"), belaytest.Says("y")), &belay.Options{Store: store.Store, Hooks: []hook.Subscription{start}})
	noError(t, second, err)
	for ev, err := range second.Session("s").Resume(t.Context()) {
		if err != nil {
			t.Log("resume", err)
		}
		if ev.Result != nil {
			t.Log(ev.Result.Text)
		}
	}
	if ran.Load() > 0 {
		t.Error("the resumed response was judged without the gate that came with the tool")
	}
}
