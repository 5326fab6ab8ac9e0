package hook_test

import (
	"context"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// SPEC H-21
func TestShadowIsRecordedAndChangesNothing(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			o := w.opts
			o.Timeout, o.Shadow = time.Minute, true
			rt := newRuntime(t, nil,
				gatePhase.On("a-trial", says(verdict{Severity: hook.SeverityHalt, Reason: "no", Context: []string{"x"}}), &o),
				gatePhase.On("b", says(ask("sure?")), nil))
			s := snapshot(t, rt)
			out := dispatch(t, gatePhase, s, write)
			equal(t, "verdict", out.Output.Severity, hook.SeverityAsk)
			equal(t, "by", out.By, "b")
			equal(t, "context", len(out.Output.Context), 0)
			runs := s.Take()
			trial := runOf(t, runs, "a-trial")
			equal(t, "shadow on record", trial.Shadow, true)
			equal(t, "state", trial.State, hook.Completed)
			equal(t, "what it would have decided", trial.Severity, hook.SeverityHalt)
			equal(t, "what it would have contributed", len(trial.Contributed), 2)
			equal(t, "shadow of the other", runOf(t, runs, "b").Shadow, false)
		})
	}
}

// SPEC H-10, H-21
func TestShadowThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	eachFailure(t, func(t *testing.T, m misdeed, o hook.Options) {
		o.Shadow, o.Failure = true, hook.Closed
		fallback := o
		fallback.Failure = collectPhase.Fallback(note("fallback"))
		rt := newRuntime(t, nil,
			gatePhase.On("bad", commits[verdict](m), &o),
			collectPhase.On("bad", commits[findings](m), &o),
			collectPhase.On("also-bad", commits[findings](m), &fallback),
			collectPhase.On("good", says(note("good")), nil))
		s := snapshot(t, rt)
		equal(t, "verdict", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityPass)
		equal(t, "state", runOf(t, s.Take(), "bad").State, m.state)
		same(t, "notes", dispatch(t, collectPhase, s, write).Output.Notes, []string{"good"})
		runs := s.Take()
		equal(t, "class", runOf(t, runs, "bad").Class, m.code)
		equal(t, "shadow on record", runOf(t, runs, "also-bad").Shadow, true)
	})
}

// SPEC H-21
func TestShadowRewriterRewritesNothing(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil,
		rewritePhase.On("a-trial", adds("+trial"), rewriter(hook.Options{Shadow: true})),
		rewritePhase.On("b-unfit", says(edit{Text: "unfit"}), rewriter(hook.Options{Shadow: true})),
		rewritePhase.On("c", adds("+c"), rewriter(hook.Options{})))
	s := snapshot(t, rt)
	out := dispatch(t, rewritePhase, s, write)
	equal(t, "input", out.Input.text, "hello+c")
	equal(t, "what was merged", out.Output.Text, "hello+c")
	same(t, "rewriters", out.Rewriters, []string{"c"})
	runs := s.Take()
	equal(t, "what the trial would have contributed", runOf(t, runs, "a-trial").Contributed[0].Hash, sha("hello+trial"))
	equal(t, "the trial that could not be applied", runOf(t, runs, "b-unfit").Class, codes.OutputInvalid)
}

// The runtime checks capabilities in shadow mode too, so that a trial shows what would
// fail.
//
// SPEC H-15, H-21
func TestShadowIsHeldToItsCapabilities(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("trial", says(deny("no")), &hook.Options{Shadow: true, Capabilities: hook.CanAsk}))
	s := snapshot(t, rt)
	equal(t, "verdict", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityPass)
	equal(t, "class", runOf(t, s.Take(), "trial").Class, codes.CapabilityMissing)
}

// SPEC H-21
func TestShadowSchedulesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := hook.NewMemoryJournal(16)
		queue := hook.NewMemoryQueue(journal, nil)
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: queue})
		var done trail
		if _, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Run: func(context.Context, hook.Job) ([]hook.Audit, error) {
			done.add("mail")
			return nil, nil
		}}); err != nil {
			t.Fatal(err)
		}
		job := []hook.Job{{Handler: "mail", Key: "k"}}
		install(t, rt,
			observePhase.On("blocking", says(remark{Jobs: job}), &hook.Options{Shadow: true}),
			observePhase.On("fired", says(remark{Jobs: job}), &hook.Options{Shadow: true, Execution: hook.FireAndRecord}),
			observePhase.On("queued", says(remark{Jobs: job}), &hook.Options{Shadow: true, Execution: hook.Background}))
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		work(t, rt)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "jobs that ran", len(done.all()), 0)
		stats, err := queue.Stats(t.Context())
		if err != nil || stats.Waiting != 0 {
			t.Errorf("queue: got %+v, %v; want it empty", stats, err)
		}
		runs := list(t, journal, hook.Filter{})
		equal(t, "runs", len(runs), 4)
		for _, r := range runs {
			equal(t, r.Subscription+" shadow", r.Shadow, true)
		}
		var states []string
		for _, r := range runs {
			if r.Subscription == "queued" {
				states = append(states, r.State.String())
			}
		}
		same(t, "the queued one runs too, and its answer changes nothing", states, []string{"backgrounded", "completed"})
	})
}
