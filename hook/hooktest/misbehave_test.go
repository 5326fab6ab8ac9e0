package hooktest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
)

// SPEC H-10, H-12
func TestMisbehaviours(t *testing.T) {
	t.Parallel()
	t.Run("at a gate", func(t *testing.T) {
		t.Parallel()
		testMisbehaviours(t, upload, file{name: "a"}, deny("too late"))
	})
	t.Run("at a collect phase", func(t *testing.T) {
		t.Parallel()
		testMisbehaviours(t, tagging, file{name: "a"}, &tags{Tags: []string{"late"}})
	})
	t.Run("at an observe phase", func(t *testing.T) {
		t.Parallel()
		testMisbehaviours(t, uploaded, file{name: "a"}, remark{Audit: []hook.Audit{{Code: "late"}}})
	})
}

// testMisbehaviours tries every misbehaviour at a phase, in every execution.
func testMisbehaviours[In any, Out hook.Output](t *testing.T, phase hook.Phase[In, Out], in In, answer Out) {
	executions := []hook.Options{{}, {Timeout: time.Minute}, {Concurrent: true}, {Execution: hook.Deadline, Timeout: time.Minute}}
	if phase.Info().Kind != hook.Gate {
		executions = append(executions, hook.Options{Execution: hook.FireAndRecord}, hook.Options{Execution: hook.Background})
	}
	for i, opts := range executions {
		for _, m := range hooktest.Misbehaviours(phase, answer) {
			waits := opts.Execution == hook.Blocking
			if m.Deadline && waits && opts.Timeout == 0 || m.Abandoned && waits {
				continue // the dispatch would wait for the handler forever
			}
			opts.Capabilities = m.Capabilities
			t.Run(fmt.Sprintf("%s/%d/%s", opts.Execution, i, m.Name), func(t *testing.T) {
				t.Parallel()
				defer m.Release()
				testMisbehaviour(t, phase, in, m, opts)
			})
		}
	}
}

func testMisbehaviour[In any, Out hook.Output](t *testing.T, phase hook.Phase[In, Out], in In, m hooktest.Misbehaviour[In, Out], opts hook.Options) {
	clock := hooktest.NewClock(noon)
	var rt *hook.Runtime
	trial := hooktest.Try(t, phase, phase.On("bad", m.Handler, &opts), in, &hooktest.Options{
		Runtime: hook.RuntimeOptions{Clock: clock},
		Others:  []hook.Subscription{phase.On("neighbour", hooktest.NilOutput[In, Out](), &hook.Options{Priority: -1})},
		Ready:   func(ready *hook.Runtime) { rt = ready; m.Bind(ready) },
		During: func(context.CancelCauseFunc) {
			if m.Deadline {
				clock.WaitTimers(t, 1)
				clock.Advance(time.Hour)
			}
		},
	})
	trial.State(m.State())
	trial.Code(m.Code)
	inline := opts.Execution == hook.Blocking && !opts.Concurrent
	switch {
	case m.Code == codes.Goexit && inline:
		if trial.Err == nil { // the error says that Goexit ended the dispatch
			t.Error("a dispatch that was ended by Goexit has no error")
		}
	case m.Code != "" && phase.Info().Kind == hook.Gate:
		trial.Denied("") // gates fail closed
	default:
		trial.Passed()
	}
	if !slices.ContainsFunc(trial.Runs, func(r hook.Run) bool { return r.Subscription == "neighbour" && r.State == hook.Completed }) {
		t.Errorf("the neighbour was not asked:\n%s", trial)
	}
	lease, err := rt.Install(phase.On("later", hooktest.NilOutput[In, Out](), nil))
	if err != nil {
		t.Fatalf("the runtime is not usable any more: %v", err)
	}
	if err := lease.Close(); err != nil {
		t.Errorf("the runtime is not usable any more: %v", err)
	}
}

func TestMisbehavioursFitThePhase(t *testing.T) {
	t.Parallel()
	names := func(all []hooktest.Misbehaviour[file, *tags]) []string {
		var names []string
		for _, m := range all {
			names = append(names, m.Name)
			m.Release()
		}
		return names
	}
	full := names(hooktest.Misbehaviours(tagging, &tags{Tags: []string{"x"}}))
	silent := names(hooktest.Misbehaviours(tagging, nil))
	if missing := slices.DeleteFunc(slices.Clone(full), func(name string) bool { return slices.Contains(silent, name) }); !slices.Equal(missing, []string{"answers beyond its capabilities"}) {
		t.Errorf("without an answer %q are left out", missing)
	}
	if !slices.Contains(full, "answers nil") {
		t.Errorf("an output that can be nil is not tried with nil: %q", full)
	}
	for _, m := range hooktest.Misbehaviours(upload, deny("x")) {
		if m.Name == "answers nil" {
			t.Error("an output that cannot be nil is tried with nil")
		}
	}
	if sorted := slices.Sorted(slices.Values(full)); len(slices.Compact(sorted)) != len(full) {
		t.Errorf("a name is there twice: %q", full)
	}
}

func TestReentersTellsThatItIsNotBound(t *testing.T) {
	t.Parallel()
	handler, _ := hooktest.Reenters(upload)
	if _, err := handler(t.Context(), file{}); err == nil {
		t.Error("a handler without a runtime pretends that it used it")
	}
}

// The handler of Reenters returns an error if a step fails. Without that, a runtime that
// rejects a step would look correct.
func TestReentersTellsWhatFails(t *testing.T) {
	t.Parallel()
	handler, bind := hooktest.Reenters(upload)
	rt, err := hook.NewRuntime([]hook.AnyPhase{uploaded}, nil)
	if err != nil {
		t.Fatal(err)
	}
	bind(rt)
	_, err = handler(t.Context(), file{})
	if _, ok := errors.AsType[*hook.InstallError](err); !ok {
		t.Errorf("error = %v, want a *hook.InstallError", err)
	}
}

func TestIgnoresCancelAnswersWhenReleased(t *testing.T) {
	t.Parallel()
	handler, release := hooktest.IgnoresCancel[file](deny("late"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answered := make(chan verdict, 1)
	go func() { // ends when the handler returns
		out, _ := handler(ctx, file{})
		answered <- out
	}()
	release()
	release()
	if out := <-answered; out.Reason != "late" {
		t.Errorf("answered %+v", out)
	}
}
