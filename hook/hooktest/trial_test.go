package hooktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

func TestTryTellsWhatCameOfIt(t *testing.T) {
	t.Parallel()
	trial := hooktest.Try(t, upload, noSecrets, file{name: ".env"}, nil)
	trial.Denied("looks like a secret")
	trial.Severity(hook.SeverityDeny)
	trial.Contributed("deny")
	trial.State(hook.Completed)
	trial.Code("")
	if trial.Err != nil || trial.By != "no-secrets" || trial.Output.Reason != ".env looks like a secret" {
		t.Errorf("outcome = %+v, error %v", trial.Outcome, trial.Err)
	}
	if len(trial.Plan.Entries) != 1 || trial.Plan.Entries[0].ID != "no-secrets" {
		t.Errorf("plan = %s", trial.Plan)
	}
	if trial.Explanation.Won != "no-secrets" || len(trial.Explanation.Merged) == 0 {
		t.Errorf("explanation = %s", trial.Explanation)
	}
	if len(trial.Runs) != 1 || trial.Runs[0].Contributed[0].Size != len(trial.Output.Reason) {
		t.Errorf("runs = %v", trial.Runs)
	}
}

func TestTryPasses(t *testing.T) {
	t.Parallel()
	trial := hooktest.Try(t, upload, noSecrets, file{name: "README"}, nil)
	trial.Passed()
	trial.Contributed()
	trial.State(hook.Completed)
}

func TestTryRunsEveryExecution(t *testing.T) {
	t.Parallel()
	note := remark{Audit: []hook.Audit{{Code: "seen"}}}
	for _, test := range []struct {
		rule string
		opts hook.Options
		runs int
	}{
		{"Try waits for a blocking handler", hook.Options{}, 1},
		{"Try waits for a concurrent handler", hook.Options{Concurrent: true}, 1},
		{"Try waits for a handler with a deadline", hook.Options{Execution: hook.Deadline, Timeout: time.Minute}, 1},
		{"Try waits for a fire_and_record handler", hook.Options{Execution: hook.FireAndRecord}, 1},
		{"Try performs background work", hook.Options{Execution: hook.Background}, 2},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			sub := uploaded.On("note", answers(note), &test.opts)
			trial := hooktest.Try(t, uploaded, sub, file{name: "a"}, nil)
			trial.State(hook.Completed)
			trial.Code("")
			if run, _ := trial.Run(); len(run.Audit) != 1 || len(trial.Runs) != test.runs {
				t.Errorf("got %d runs, want %d, the last with an audit note:\n%s", len(trial.Runs), test.runs, trial)
			}
		})
	}
}

func TestTryInstallsOthers(t *testing.T) {
	t.Parallel()
	first := upload.On("a-first", answers(deny("closed on sundays")), nil)
	trial := hooktest.Try(t, upload, noSecrets, file{name: ".env"}, &hooktest.Options{Others: []hook.Subscription{
		first, uploaded.On("note", answers(remark{}), nil),
	}})
	trial.Denied("closed on sundays")
	trial.NotAsked()
	trial.State(hook.Skipped)
	trial.Code(codes.Skipped)
	if trial.By != "a-first" || len(trial.Runs) != 2 {
		t.Errorf("by = %q with %d runs, want a-first with 2", trial.By, len(trial.Runs))
	}
}

// SPEC J-09
func TestTryPerformsJobs(t *testing.T) {
	t.Parallel()
	performed := 0
	thumbnail := hook.JobHandler{Name: "thumbnail", Run: func(context.Context, hook.Job) ([]hook.Audit, error) {
		performed++
		return nil, nil
	}}
	job := hook.Job{Handler: "thumbnail", Key: "k", At: time.Now().Add(time.Hour)}
	sub := tagging.On("tag", answers(&tags{Jobs: []hook.Job{job, job}}), nil)
	trial := hooktest.Try(t, tagging, sub, file{name: "a"}, &hooktest.Options{Jobs: []hook.JobHandler{thumbnail}})
	trial.State(hook.Completed)
	if performed != 1 || len(trial.Jobs) != 1 || len(trial.Runs) != 2 || trial.Runs[1].JobHandler != "thumbnail" {
		t.Errorf("performed %d of %d jobs, want 1 of 1:\n%s", performed, len(trial.Jobs), trial)
	}

	trial = hooktest.Try(t, tagging, sub, file{name: "a"}, nil)
	trial.Code(codes.JobUnknown)
}

func TestTryUsesTheRuntimesOptions(t *testing.T) {
	t.Parallel()
	journal := hook.NewMemoryJournal(8)
	trial := hooktest.Try(t, upload, noSecrets, file{name: "a"}, &hooktest.Options{Runtime: hook.RuntimeOptions{Journal: journal}})
	for run := range journal.List(t.Context(), hook.Filter{}) {
		if run.ID != trial.Runs[0].ID {
			t.Errorf("the given journal has run %s, the trial %s", run.ID, trial.Runs[0].ID)
		}
		return
	}
	t.Error("the given journal got no run")
}

func TestTryTellsAJournalThatFails(t *testing.T) {
	t.Parallel()
	broken := newSlate()
	broken.append = func(context.Context, []hook.Run) error { return errors.New("disk full") }
	trial := hooktest.Try(t, upload, noSecrets, file{name: "a"}, &hooktest.Options{Runtime: hook.RuntimeOptions{Journal: broken}})
	if _, ok := errors.AsType[*hook.JournalError](trial.Err); !ok {
		t.Errorf("error = %v, want a *hook.JournalError", trial.Err)
	}
}

// SPEC H-12
func TestTrySurvivesGoexit(t *testing.T) {
	t.Parallel()
	sub := upload.On("exits", hooktest.Goexits[file, verdict](), nil)
	trial := hooktest.Try(t, upload, sub, file{}, nil)
	trial.State(hook.Failed)
	trial.Code(codes.Goexit)
	if trial.Err == nil {
		t.Error("a dispatch that ended by Goexit has no error")
	}
	probetest.Run(t, func(t testing.TB) { hooktest.Try(t, upload, sub, file{}, nil).Passed() }).WantFailure(t, "runtime.Goexit")
}

func TestTryCancelsTheTurn(t *testing.T) {
	t.Parallel()
	sub := upload.On("hangs", hooktest.Hangs[file, verdict](), nil)
	gone := errors.New("the user went away")
	trial := hooktest.Try(t, upload, sub, file{}, &hooktest.Options{During: func(cancel context.CancelCauseFunc) { cancel(gone) }})
	trial.Denied("")
	trial.Code(codes.Canceled)
	if trial.Err != nil && !errors.Is(trial.Err, gone) {
		t.Errorf("error = %v, want none or the cause", trial.Err)
	}
}

func TestTryEndsAHandlerThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		sub := upload.On("hangs", hooktest.Hangs[file, verdict](), nil)
		hooktest.Try(t, upload, sub, file{}, &hooktest.Options{Timeout: 3 * time.Second}).Code(codes.Canceled)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("the trial took %s, want 3s", took)
		}
	})
}

func TestTryGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // with real time, a busy machine may need more than a millisecond to start the handler
		handler, release := hooktest.IgnoresCancel[file](verdict{})
		defer release()
		sub := upload.On("stubborn", handler, nil)
		probetest.Run(t, func(t testing.TB) {
			hooktest.Try(t, upload, sub, file{}, &hooktest.Options{Timeout: time.Millisecond})
		}).WantFailure(t, `"stubborn" at upload`, "ignores its context")
	})
}

func TestTryRefusesWhatCannotBeInstalled(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		sub  hook.Subscription
		opts *hooktest.Options
		want string
	}{
		{"a faulty subscription", upload.On("a b", answers(verdict{}), nil), nil, "id: use 1 to 128"},
		{"an empty subscription", hook.Subscription{}, nil, "the subscription is empty"},
		{"a subscription of another phase", uploaded.On("a", answers(remark{}), nil), nil, "its phase is uploaded, but Try got the phase upload"},
		{"a faulty job handler", noSecrets, &hooktest.Options{Jobs: []hook.JobHandler{{Name: "a"}}}, "run: the handler has no Run function"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			probetest.Run(t, func(t testing.TB) { hooktest.Try(t, upload, test.sub, file{}, test.opts) }).WantFailure(t, "cannot try", test.want)
		})
	}
	var none hook.Phase[file, verdict]
	probetest.Run(t, func(t testing.TB) { hooktest.Try(t, none, noSecrets, file{}, nil) }).WantFailure(t, "not made by hook.Define")
}

// If the phase itself panics, Try must end only this test, and not the process.
func TestTrySurvivesAPhaseThatPanics(t *testing.T) {
	t.Parallel()
	for fault, def := range map[string]hook.Definition[file, *tags]{
		"merge is broken": {Merge: func(*hook.Merging, *tags, *tags) *tags { panic("merge is broken") }},
		"scope is broken": {
			Merge: func(_ *hook.Merging, merged, _ *tags) *tags { return merged },
			Scope: func(file) *hook.Scope { panic("scope is broken") },
		},
	} {
		def.Name, def.Kind, def.Capabilities = "faulty", hook.Collect, hook.CanAddContext
		faulty := hook.Define(def)
		sub := faulty.On("a", answers(&tags{Tags: []string{"x"}}), nil)
		probetest.Run(t, func(t testing.TB) { hooktest.Try(t, faulty, sub, file{}, nil).Passed() }).WantFailure(t, fault)
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	in := hooktest.Input(t, upload, `{"name": "a.txt", "owner": "ann"}`)
	if in.name != "a.txt" || in.owner != "ann" || in.scope.Session != "test" || in.scope.Turn != "test-1" || in.scope.Step != 1 {
		t.Errorf("input = %+v", in)
	}
	probetest.Run(t, func(t testing.TB) { hooktest.Input(t, upload, `{"name": `) }).WantFailure(t, "upload input", `given: {"name": `)
	probetest.Run(t, func(t testing.TB) { hooktest.Input(t, upload, `{}`) }).WantFailure(t, "name: there is none")
}
