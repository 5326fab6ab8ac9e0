package hooktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// Options are the settings of a trial. A nil *Options is valid.
type Options struct {
	// Runtime are the settings of the trial's runtime. Defaults to those of
	// hook.NewRuntime, with a queue whose jobs the trial performs itself, each once,
	// without waiting for its due time.
	Runtime hook.RuntimeOptions
	// Others are more subscriptions to install. Defaults to none.
	Others []hook.Subscription
	// Jobs are the job handlers that answers may name. Defaults to none.
	Jobs []hook.JobHandler
	// Ready is called after everything is installed and before the dispatch. Use it for
	// handlers that need their runtime. Defaults to nothing.
	Ready func(rt *hook.Runtime)
	// During is called on the test's own goroutine while the dispatch runs. Use it to move
	// a Clock or to release a handler. To cancel the turn, call its argument. Defaults to
	// nothing.
	During func(cancel context.CancelCauseFunc)
	// Timeout limits the trial. After the timeout, the turn is cancelled. If the dispatch
	// still does not return, the test fails. Defaults to 10 seconds.
	Timeout time.Duration
}

// Trial is the result of trying a subscription. Its methods are assertions: they fail the
// test with a message that shows the whole trial.
type Trial[In any, Out hook.Output] struct {
	// Outcome is the result of the dispatch: Input, Output, By, Rewriters and Diagnostics.
	// It is empty if the handler ended the dispatching goroutine.
	hook.Outcome[In, Out]
	// Err is the error of the dispatch.
	Err error
	// Runs are the records of all subscriptions and jobs, oldest first.
	Runs []hook.Run
	// Jobs are the jobs that were queued, unless Options.Runtime has its own queue.
	Jobs []hook.Job
	// Plan is the planned order of the phase's subscriptions.
	Plan hook.Plan
	// Explanation says which handlers were called and which answer won. It is made from the
	// records, so that no handler runs a second time.
	Explanation hook.Explanation

	t        testing.TB
	id       string
	phase    string
	panicked string // a panic of the phase itself, with its stack
}

// grace is how long a trial may still take after it was cancelled.
const grace = time.Second

// errGoexit is the error of a trial whose handler ended the dispatching goroutine.
var errGoexit = errors.New("the handler ended the dispatching goroutine with runtime.Goexit")

// Try installs one subscription in its own runtime and dispatches one input to its phase.
// It waits for everything that the dispatch started, and returns the result. The test fails
// if the subscription cannot be installed or the dispatch does not return.
func Try[In any, Out hook.Output](t testing.TB, phase hook.Phase[In, Out], sub hook.Subscription, in In, opts *Options) *Trial[In, Out] {
	t.Helper()
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if on := sub.Phase(); on != nil && phase.Name() != "" && on.Name() != phase.Name() {
		t.Fatalf("hooktest: cannot try %q: its phase is %s, but Try got the phase %s", sub.ID(), on.Name(), phase.Name())
	}
	stage := newStage(&o)
	rt, err := stage.install(phase, sub, &o)
	if err != nil {
		t.Fatalf("hooktest: cannot try %q at %s (add its dependencies to Options.Others): %v", sub.ID(), phase.Name(), err)
	}
	if o.Ready != nil {
		o.Ready(rt)
	}
	trial := &Trial[In, Out]{t: t, id: sub.ID(), phase: phase.Name()}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan struct{})
	go func() { // ends when the dispatch ends; never if a handler ignores its context
		defer close(ended)
		trial.run(ctx, phase, rt, stage, in)
	}()
	if o.During != nil {
		o.During(cancel)
	}
	if !endedWithin(ended, o.Timeout) {
		cancel(fmt.Errorf("hooktest: the trial took longer than %s", o.Timeout))
		if !endedWithin(ended, grace) {
			t.Fatalf("hooktest: trying %q at %s did not end within %s, nor when the turn was cancelled: the handler ignores its context",
				sub.ID(), phase.Name(), o.Timeout)
		}
	}
	if trial.panicked != "" {
		t.Fatalf("hooktest: trying %q: phase %s itself panicked: %s", sub.ID(), phase.Name(), trial.panicked)
	}
	return trial
}

// run dispatches and waits for everything that the dispatch started.
func (trial *Trial[In, Out]) run(ctx context.Context, phase hook.Phase[In, Out], rt *hook.Runtime, stage *stage, in In) {
	snapshot := rt.Snapshot()
	trial.Plan = phase.Plan(snapshot)
	trial.Err = errGoexit
	dispatched := make(chan struct{})
	go func() { // ends when the dispatch ends, or with Goexit
		defer close(dispatched)
		defer func() {
			if r := recover(); r != nil {
				trial.panicked = fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
		}()
		trial.Outcome, trial.Err = phase.Dispatch(ctx, snapshot, in)
	}()
	<-dispatched
	keep := func(err error) {
		if trial.Err == nil {
			trial.Err = err
		}
	}
	keep(rt.Drain(ctx)) // waits for detached runs
	keep(snapshot.Release(context.WithoutCancel(ctx)))
	keep(stage.perform(ctx, rt))
	trial.Jobs = stage.queue.all()
	trial.Runs = stage.journal.runs()
	trial.explain()
}

// explain makes the explanation from the records.
func (trial *Trial[In, Out]) explain() {
	x := hook.Explanation{Phase: trial.Plan.Phase, Kind: trial.Plan.Kind}
	if all := hook.ExplainRuns(trial.Plan, trial.Runs); len(all) > 0 {
		x = all[0] // the first one: a handler can dispatch again, inside this dispatch
	} else {
		for _, e := range trial.Plan.Entries {
			x.Entries = append(x.Entries, hook.Explained{Position: e.Position, ID: e.ID, Why: "it did not match"})
		}
	}
	for _, id := range trial.Plan.Disabled {
		x.Entries = append(x.Entries, hook.Explained{ID: id, Why: "it is disabled"})
	}
	if len(trial.Diagnostics) > 0 {
		x.Diagnostics = trial.Diagnostics
	}
	if trial.Err != nil {
		x.Error = trial.Err.Error()
	} else if merged, err := json.Marshal(trial.Output); err == nil {
		x.Merged = merged
	}
	trial.Explanation = x
}

// String shows the whole trial: which handlers were called, what was recorded, and what
// went wrong.
func (trial *Trial[In, Out]) String() string {
	var b strings.Builder
	b.WriteString(trial.Explanation.String())
	for _, r := range trial.Runs {
		fmt.Fprintf(&b, "  run: %s\n", r)
	}
	for _, d := range trial.Diagnostics {
		fmt.Fprintf(&b, "  diagnostic: %s", d)
		if d.Err != nil && d.Message != d.Err.Error() {
			fmt.Fprintf(&b, " (%v)", d.Err)
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// endedWithin reports whether the channel was closed within d.
func endedWithin(ended <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// Run returns the newest record of the tried subscription. For background work, that is the
// record of its attempt. Run reports false if there is no record, because the subscription
// did not match.
func (trial *Trial[In, Out]) Run() (hook.Run, bool) {
	for _, r := range slices.Backward(trial.Runs) {
		if r.Subscription == trial.id && r.Phase == trial.phase && r.JobHandler == "" {
			return r, true
		}
	}
	return hook.Run{}, false
}
