package belaytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/store/memstore"
)

// session is the id of the session that Say, Answer and Resume use.
const session = "test"

// defaultTimeout is the default of Agent.Timeout.
const defaultTimeout = 10 * time.Second

// Agent is an agent under test. Make one with [New].
type Agent struct {
	*belay.Agent

	// Timeout limits each turn. A turn that takes longer is aborted. Set Timeout before the
	// turn. Defaults to 10 seconds.
	Timeout time.Duration

	t       testing.TB
	sent    recorder
	script  interface{ Left() int } // nil if the model plays no script
	journal hook.ListJournal        // nil if the journal cannot list its records
	tag     string                  // marks the goroutines of this agent's turns
	turns   []*Turn
}

// New makes an agent from a model, as [belay.New] does, and closes the agent when the test
// ends. The package comment lists the defaults for options that are not set.
func New(t testing.TB, model belay.Model, opts *belay.Options) *Agent {
	t.Helper()
	var o belay.Options
	if opts != nil {
		o = *opts
	}
	if o.Store == nil {
		o.Store = memstore.New(nil)
	}
	o.SpillDir = cmp.Or(o.SpillDir, t.TempDir())
	if o.Retry == (hook.Retry{}) {
		o.Retry = hook.Retry{Attempts: 5, Delay: time.Microsecond}
	}
	a := &Agent{t: t, tag: newTag(), journal: journalOf(&o)}
	if model != nil {
		a.script, _ = model.(interface{ Left() int })
		model = belay.WrapModel(model, a.sent.stream)
	}
	agent, err := belay.New(model, &o)
	if err != nil {
		t.Fatalf("belaytest: the agent cannot be made: %v", err)
		return a
	}
	a.Agent = agent
	t.Cleanup(a.finish)
	return a
}

// journalOf returns the journal of an agent with these options, or nil if there is none
// that can list runs.
func journalOf(o *belay.Options) hook.ListJournal {
	var journal hook.Journal
	if o.Runtime != nil && o.Runtime.Journal != nil {
		journal = o.Runtime.Journal
	} else if store, ok := o.Store.(belay.JournalStore); ok {
		journal = store.Journal()
	}
	list, _ := journal.(hook.ListJournal)
	return list
}

// Say runs a turn in the session "test" and returns the turn when it has ended.
func (a *Agent) Say(text string, parts ...belay.Part) *Turn {
	a.t.Helper()
	return a.Take(func(ctx context.Context) iter.Seq2[belay.Event, error] {
		return a.Session(session).Run(ctx, text, parts...)
	})
}

// Resume resumes the parked turn of the session "test".
func (a *Agent) Resume() *Turn {
	a.t.Helper()
	return a.Take(a.Session(session).Resume)
}

// Take runs the turn that start begins, in any session, and returns the turn when it has
// ended. start gets a context that ends after the agent's Timeout.
func (a *Agent) Take(start func(ctx context.Context) iter.Seq2[belay.Event, error]) *Turn {
	a.t.Helper()
	bound := cmp.Or(a.Timeout, defaultTimeout)
	ctx, cancel := context.WithTimeoutCause(a.t.Context(), bound, fmt.Errorf("belaytest: the turn took longer than %s", bound))
	defer cancel()
	turn := &Turn{agent: a, t: a.t, began: time.Now(), from: a.sent.count()}
	done := make(chan struct{})
	tagged(ctx, a.tag, func() { // Agent.finish waits for this goroutine
		go func() {
			defer close(done)
			turn.read(start(ctx))
		}()
	})
	select {
	case <-done:
	case <-ctx.Done():
		a.unwind(done, bound)
	}
	a.read(turn)
	a.turns = append(a.turns, turn)
	return turn
}

// unwind waits until an aborted turn has ended. It waits for at most bound, the timeout
// of the turn.
func (a *Agent) unwind(done <-chan struct{}, bound time.Duration) {
	a.t.Helper()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		a.t.Fatalf("belaytest: the turn was aborted after %s and then did not end: a model, a tool or a hook ignores the cancellation. These goroutines are still running:\n%s", bound, goroutines(a.tag))
	}
}

// read adds the requests to the model and the stored messages to the turn. The test fails
// if a request or the transcript is not well-formed.
func (a *Agent) read(turn *Turn) {
	a.t.Helper()
	turn.Requests = a.sent.since(turn.from)
	for i := range turn.Requests {
		if err := WellFormed(turn.Requests[i].Messages); err != nil {
			a.t.Errorf("request %d of the turn is not well-formed: %v\n%s", i+1, err, Render(turn.Requests[i].Messages))
		}
	}
	if turn.session == "" {
		return // the turn was refused before it began
	}
	all := a.messages(turn.session)
	for _, m := range all {
		if m.Turn == turn.ID {
			turn.Messages = append(turn.Messages, m)
		}
	}
	if turn.Reason == belay.EndParked {
		all = answered(all)
	}
	if err := WellFormed(all); err != nil {
		a.t.Errorf("after the turn %q the transcript is not well-formed: %v\n%s", turn.ID, err, Render(all))
	}
}

// messages reads the transcript of a session.
func (a *Agent) messages(id string) []*belay.Message {
	a.t.Helper()
	var all []*belay.Message
	for m, err := range a.Session(id).Messages(context.WithoutCancel(a.t.Context())) {
		if errors.Is(err, belay.ErrNotFound) {
			return nil
		}
		if err != nil {
			a.t.Fatalf("belaytest: the transcript of session %q cannot be read: %v", id, err)
			return nil
		}
		all = append(all, m)
	}
	return all
}

// Messages returns the transcript of the session "test", oldest first.
func (a *Agent) Messages() []*belay.Message {
	a.t.Helper()
	return a.messages(session)
}

// finish closes the agent when the test ends. It fails the test for an unexpected error of a
// turn, for steps of the script that were not played, and for leaked goroutines.
func (a *Agent) finish() {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(a.Timeout, defaultTimeout))
	defer cancel()
	tagged(ctx, a.tag, func() {
		if err := a.Close(ctx); err != nil {
			a.t.Errorf("belaytest: closing the agent failed: %v", err)
		}
	})
	for _, turn := range a.turns {
		if turn.Err != nil && !turn.expected {
			turn.failf("the turn failed, but the test does not call Failed: %v", turn.Err)
		}
	}
	if a.t.Failed() {
		return // the script and the goroutines may only show consequences of that failure
	}
	if a.script != nil && a.script.Left() > 0 {
		a.t.Errorf("%d steps of the script were not played", a.script.Left())
	}
	if left := leaked(ctx, a.tag); left != "" {
		a.t.Errorf("goroutines of the agent's turns are left: close the component that starts them, or make it return when its context is cancelled\n%s", left)
	}
}

// recorder records the requests to a model.
type recorder struct {
	mu       sync.Mutex
	requests []belay.Request
}

// stream records each request when it is sent.
func (r *recorder) stream(ctx context.Context, req *belay.Request, next func(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error]) iter.Seq2[belay.Chunk, error] {
	return func(yield func(belay.Chunk, error) bool) {
		r.mu.Lock()
		sent := *req
		sent.Messages, sent.Tools = slices.Clone(req.Messages), slices.Clone(req.Tools)
		r.requests = append(r.requests, sent)
		r.mu.Unlock()
		next(ctx, req)(yield)
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

func (r *recorder) since(n int) []belay.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests[n:])
}

// Transcript returns the session "test" as text: see [Render].
func (a *Agent) Transcript() string {
	a.t.Helper()
	return Render(a.Messages())
}

// Golden compares the transcript of the session "test" with a file, usually in testdata. If
// they differ, the test fails and shows the first difference. If the environment has
// BELAYTEST_UPDATE=1, Golden writes the file instead.
func (a *Agent) Golden(path string) {
	a.t.Helper()
	golden(a.t, path, strings.TrimRight(a.Transcript(), "\n")+"\n")
}
