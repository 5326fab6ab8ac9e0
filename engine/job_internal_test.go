package engine

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// noModel is a model that is never called.
type noModel struct{}

func (noModel) Stream(context.Context, *belay.Request) iter.Seq2[belay.Chunk, error] {
	return func(func(belay.Chunk, error) bool) {}
}

// The result of an attempt decides whether the job is due again. Only an idempotent job
// can run again: at once if the worker was stopped, after a pause if the job failed. The
// job ends when its attempts are used up or another attempt cannot help.
//
// SPEC J-04, J-05, J-06
func TestWhenAJobIsDueAgain(t *testing.T) {
	t.Parallel()
	const never, pause = -1, time.Minute
	retry := hook.Retry{Attempts: 3, Delay: pause}
	for name, test := range map[string]struct {
		job   hook.Job
		stops bool // the worker stops while the job runs
		fails bool
		state hook.State
		class codes.Code
		after time.Duration
	}{
		"it succeeds":         {job: hook.Job{Idempotent: true, Attempt: 1}, state: hook.Completed, after: never},
		"idempotent, stopped": {job: hook.Job{Idempotent: true, Attempt: 1}, stops: true, state: hook.Interrupted, class: codes.Canceled, after: 0},
		"idempotent, stopped at the last attempt":  {job: hook.Job{Idempotent: true, Attempt: 3}, stops: true, state: hook.Interrupted, class: codes.Canceled, after: 0},
		"not idempotent, stopped":                  {job: hook.Job{Attempt: 1}, stops: true, state: hook.Interrupted, class: codes.Canceled, after: never},
		"idempotent, fails":                        {job: hook.Job{Idempotent: true, Attempt: 2}, fails: true, state: hook.Failed, class: codes.Error, after: pause},
		"idempotent, fails at the last attempt":    {job: hook.Job{Idempotent: true, Attempt: 3}, fails: true, state: hook.Failed, class: codes.Error, after: never},
		"not idempotent, fails":                    {job: hook.Job{Attempt: 1}, fails: true, state: hook.Failed, class: codes.Error, after: never},
		"its handler is gone":                      {job: hook.Job{Handler: "gone", Idempotent: true, Attempt: 1}, state: hook.Failed, class: codes.HandlerGone, after: never},
		"its handler has changed":                  {job: hook.Job{Version: "2", Idempotent: true, Attempt: 1}, state: hook.Failed, class: codes.HandlerChanged, after: never},
		"another worker has its agent":             {job: hook.Job{Scope: hook.Scope{Agent: "other"}, Attempt: 1}, state: hook.Interrupted, class: codes.HandlerGone, after: strangeJob},
		"another worker has its agent, idempotent": {job: hook.Job{Scope: hook.Scope{Agent: "other"}, Idempotent: true, Attempt: 1}, state: hook.Interrupted, class: codes.HandlerGone, after: strangeJob},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			agent, err := belay.New(noModel{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := agent.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			_, err = agent.Hooks().InstallJobs(hook.JobHandler{Name: "mail", Run: func(ctx context.Context, _ hook.Job) ([]hook.Audit, error) {
				if test.stops {
					stop()
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				if test.fails {
					return nil, errors.New("not today")
				}
				return nil, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			job := test.job
			job.ID, job.Key, job.Retry = "j", "k", retry
			if job.Handler == "" {
				job.Handler = "mail"
			}
			if job.Scope.Agent == "" {
				job.Scope.Agent = agent.Name()
			}
			w := &Worker{agents: Of(agent), opts: Options{Logger: slog.New(slog.DiscardHandler)}}
			run, again := w.perform(ctx, job)
			if run.State != test.state || run.Class != test.class {
				t.Errorf("it ended %s (%s), want %s (%s)", run.State, run.Class, test.state, test.class)
			}
			switch {
			case test.after == never && !again.IsZero():
				t.Errorf("it is due again %s after its end, want never", again.Sub(run.Ended))
			case test.after != never && !again.Equal(run.Ended.Add(test.after)):
				t.Errorf("it is due again at %s, want %s after its end at %s", again, test.after, run.Ended)
			}
		})
	}
}
