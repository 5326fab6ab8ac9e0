package hook_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
)

// countingJournal remembers what was appended, and can be made to fail.
type countingJournal struct {
	*hook.MemoryJournal

	mu      sync.Mutex
	appends []string // the runs of each Append
	fault   error
	unread  error
	during  func() // called by Append before it stores anything
}

func newCountingJournal() *countingJournal {
	return &countingJournal{MemoryJournal: hook.NewMemoryJournal(1000)}
}

func (j *countingJournal) Append(ctx context.Context, runs []hook.Run) error {
	if j.during != nil {
		j.during()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.appends = append(j.appends, brief(runs))
	if err := errors.Join(j.fault, ctx.Err()); err != nil {
		return err
	}
	return j.MemoryJournal.Append(ctx, runs)
}

func (j *countingJournal) List(ctx context.Context, filter hook.Filter) iter.Seq2[hook.Run, error] {
	if j.unread != nil {
		return func(yield func(hook.Run, error) bool) { yield(hook.Run{}, j.unread) }
	}
	return j.MemoryJournal.List(ctx, filter)
}

func (j *countingJournal) written() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.appends)
}

func (j *countingJournal) setFault(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault = err
}

// outside are the options of a handler that leaves the process.
var outside = &hook.Options{Kind: hook.HandlerCommand}

// SPEC J-04: a handler that leaves the process, or that the turn does not wait for, has a
// started record in the journal before it runs. A Go handler that the turn waits for has
// none.
func TestStartIsOnRecordBeforeTheHandlerRuns(t *testing.T) {
	t.Parallel()
	executions := map[string]hook.Options{
		"blocking":              {},
		"blocking, timed":       {Timeout: time.Minute},
		"blocking, matched":     {Match: hook.Match{Tools: []string{"write"}}},
		"concurrent":            {Concurrent: true},
		"deadline":              {Execution: hook.Deadline, Timeout: time.Minute},
		"shadow":                {Shadow: true},
		"fire_and_record":       {Execution: hook.FireAndRecord},
		"fire_and_record, late": {Execution: hook.FireAndRecord, After: []string{"other"}},
	}
	kinds := []hook.HandlerKind{hook.HandlerGo, hook.HandlerAction, hook.HandlerCommand, hook.HandlerWorker, hook.HandlerWebhook}
	for name, opts := range executions {
		for _, kind := range kinds {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					opts := opts
					opts.Kind = kind
					want := ""
					if opts.Execution == hook.FireAndRecord || kind != hook.HandlerGo && kind != hook.HandlerAction {
						want = "a:started"
					}
					journal := newCountingJournal()
					var during []hook.Run
					rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
						observePhase.On("a", func(ctx context.Context, _ call) (remark, error) {
							for r, err := range journal.List(ctx, hook.Filter{}) {
								if err != nil {
									return remark{}, err
								}
								during = append(during, r)
							}
							return remark{}, nil
						}, &opts),
						observePhase.On("other", says(remark{}), nil))
					s := rt.Snapshot()
					dispatch(t, observePhase, s, write)
					if err := errors.Join(rt.Drain(t.Context()), s.Release(t.Context())); err != nil {
						t.Fatal(err)
					}
					equal(t, "on record while it ran", brief(during), want)
					ended := runOf(t, list(t, journal, hook.Filter{}), "a")
					equal(t, "its state in the end", ended.State, hook.Completed)
					if want == "" {
						equal(t, "attempt", ended.Attempt, 0)
						return
					}
					if len(during) == 1 {
						equal(t, "id", ended.ID, during[0].ID)
						equal(t, "key", ended.Key, during[0].Key)
						equal(t, "dispatch", ended.Dispatch, during[0].Dispatch)
						equal(t, "scope", during[0].Scope, *write.scope)
					}
					equal(t, "attempt", ended.Attempt, 1)
				})
			})
		}
	}
}

// SPEC J-04: the started records of one dispatch share one commit. A handler that is not
// reached ends as skipped. A handler that does not match has no record.
func TestStartedRecordsShareOneCommit(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := newCountingJournal()
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			gateNamed("a-go", nil),
			gateNamed("b", outside),
			gateNamed("c", &hook.Options{Kind: hook.HandlerWorker, Match: hook.Match{Tools: []string{"read"}}}),
			gateNamed("d", &hook.Options{Kind: hook.HandlerWebhook, Execution: hook.Deadline, Timeout: time.Second}),
			gatePhase.On("e", says(deny("no")), &hook.Options{Kind: hook.HandlerWorker}),
			gateNamed("f", outside),
			gateNamed("g", &hook.Options{Kind: hook.HandlerCommand, Concurrent: true, After: []string{"e"}}))
		s := rt.Snapshot()
		out := dispatch(t, gatePhase, s, write)
		equal(t, "verdict", out.By, "e")
		same(t, "commits before the turn's own", journal.written(), []string{"b:started d:started e:started f:started g:started"})
		runs := s.Take()
		equal(t, "runs", brief(runs), "a-go:completed b:completed d:completed e:completed f:skipped(hook.skipped) g:skipped(hook.skipped)")
		if err := s.Record(t.Context(), runs); err != nil {
			t.Fatal(err)
		}
		equal(t, "on record", len(list(t, journal, hook.Filter{})), len(runs))
		equal(t, "still started", brief(list(t, journal, hook.Filter{States: []hook.State{hook.Started}})), "")
	})
}

// SPEC J-04: in the in-memory journal too, the end of a run replaces its started record, so
// that each run is listed once.
func TestTheJournalInMemoryHasEachRunOnce(t *testing.T) {
	t.Parallel()
	journal := hook.NewMemoryJournal(1000)
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gateNamed("a", outside), gateNamed("b", nil))
	s := rt.Snapshot()
	dispatch(t, gatePhase, s, write)
	if err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "on record", brief(list(t, journal, hook.Filter{})), "a:completed b:completed")
}

// SPEC J-04: a dispatch writes no started record if a Go gate denies before another handler
// is reached.
func TestNoStartedRecordForWhatIsNotReached(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
		gatePhase.On("a", says(deny("no")), nil), gateNamed("b", outside))
	s := snapshot(t, rt)
	dispatch(t, gatePhase, s, write)
	same(t, "commits", journal.written(), nil)
	equal(t, "runs", brief(s.Take()), "a:completed b:skipped(hook.skipped)")
}

// SPEC J-04, H-07: handlers must match the rewritten input. A handler that no longer
// matches ends as skipped. A handler that matches only now gets its started record before
// it runs.
func TestStartedRecordsFollowTheRewrittenInput(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	var during string
	lang := func(text string) hook.Match { return hook.Match{Labels: map[string][]string{"lang": {text}}} }
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
		rewritePhase.On("rewriter", says(edit{Text: "bye"}), rewriter(hook.Options{Kind: hook.HandlerCommand})),
		rewritePhase.On("of-hello", says(edit{Severity: hook.SeverityDeny}), &hook.Options{Kind: hook.HandlerCommand, Match: lang("hello")}),
		rewritePhase.On("of-bye", does[edit](func(context.Context, call) {
			during = brief(list(t, journal, hook.Filter{Subscription: "of-bye"}))
		}), &hook.Options{Kind: hook.HandlerCommand, Match: lang("bye")}))
	s := snapshot(t, rt)
	out := dispatch(t, rewritePhase, s, write)
	equal(t, "verdict", out.By, "")
	equal(t, "on record while the second ran", during, "of-bye:started")
	same(t, "commits", journal.written(), []string{"rewriter:started of-hello:started", "of-bye:started"})
	equal(t, "runs", brief(s.Take()), "rewriter:completed of-bye:completed of-hello:skipped(hook.skipped)")
}

// SPEC J-03, J-04: if the started record cannot be written, the handler does not run. A
// gate then denies, whatever its failure mode is. Other handlers follow their failure mode.
func TestStartThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	faults := map[string]func(*countingJournal, *hook.Snapshot){
		"the journal cannot be written": func(j *countingJournal, _ *hook.Snapshot) { j.setFault(errDisk) },
		"the journal panics":            func(j *countingJournal, _ *hook.Snapshot) { j.during = func() { panic(errDisk) } },
		"a resumed turn's journal cannot be read": func(j *countingJournal, s *hook.Snapshot) {
			j.unread = errDisk
			s.Resumes("t1")
		},
	}
	ways := map[string]hook.Options{
		"blocking":   {Kind: hook.HandlerCommand},
		"concurrent": {Kind: hook.HandlerWorker, Concurrent: true},
		"deadline":   {Kind: hook.HandlerWebhook, Execution: hook.Deadline, Timeout: time.Minute},
		"fired":      {Execution: hook.FireAndRecord},
	}
	for fault, inject := range faults {
		for way, opts := range ways {
			for _, failure := range []hook.Failure{hook.Closed, hook.Open} {
				if way == "fired" && failure == hook.Closed {
					continue // Install rejects this combination
				}
				t.Run(fmt.Sprintf("%s, %s, %s", fault, way, failure), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						opts := opts
						opts.Failure = failure
						journal := newCountingJournal()
						var ran trail
						subs := []hook.Subscription{
							collectPhase.On("a", does[findings](func(context.Context, call) { ran.add("collect a") }), &opts),
							collectPhase.On("b", does[findings](func(context.Context, call) { ran.add("collect b") }), &opts),
							collectPhase.On("c", says(note("kept")), nil),
						}
						if opts.Execution != hook.FireAndRecord {
							subs = append(subs, gatePhase.On("a", ran.gate("gate a"), &opts), gatePhase.On("b", ran.gate("gate b"), &opts))
						}
						rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, subs...)
						s := rt.Snapshot()
						inject(journal, s)
						if opts.Execution != hook.FireAndRecord {
							out, err := gatePhase.Dispatch(t.Context(), s, write)
							if _, ok := errors.AsType[*hook.JournalError](err); !ok || out.Output.Severity != hook.SeverityDeny {
								t.Errorf("gate: got %v, %v; want a denial and a *JournalError", out.Output, err)
							}
							s.Take()
						}
						out, err := collectPhase.Dispatch(t.Context(), s, write)
						failed, closed := errors.AsType[*hook.FailureError](err)
						switch {
						case failure == hook.Closed && (!closed || failed.Code != codes.Journal || failed.Subscription != "a"):
							t.Errorf("collect, closed: got %v, want the failure of a", err)
						case failure == hook.Open && (err != nil || len(out.Output.Notes) != 1 || !slices.Contains(codesOf(out.Diagnostics), codes.Journal)):
							t.Errorf("collect, open: got %v, %+v, %v; want what others say and a diagnostic", err, out.Output, out.Diagnostics)
						}
						same(t, "handlers that ran", ran.all(), nil)
						s.Take()
						journal.setFault(nil)
						journal.during = nil
						if err := errors.Join(s.Release(t.Context()), rt.Drain(t.Context())); err != nil {
							t.Fatal(err)
						}
					})
				})
			}
		}
	}
}

// SPEC J-03: if the journal fails, a dispatch does not try it again, because each attempt
// may take long.
func TestJournalThatFailsIsAskedOncePerDispatch(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	journal.setFault(errDisk)
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
		observePhase.On("a", says(remark{}), outside), observePhase.On("b", says(remark{}), outside), observePhase.On("c", says(remark{}), outside))
	s := rt.Snapshot()
	dispatch(t, observePhase, s, write)
	equal(t, "commits that were tried", len(journal.written()), 1)
	equal(t, "runs", brief(s.Take()), "a:failed(journal.unavailable) b:failed(journal.unavailable) c:failed(journal.unavailable)")
	if err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A hook in shadow mode changes nothing, even if its start cannot be recorded.
//
// SPEC J-03
func TestShadowWhoseStartCannotBeRecordedChangesNothing(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	journal.setFault(errDisk)
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
		gatePhase.On("a", says(deny("no")), &hook.Options{Kind: hook.HandlerCommand, Shadow: true}))
	s := rt.Snapshot()
	equal(t, "verdict", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityPass)
	equal(t, "run", brief(s.Take()), "a:failed(journal.unavailable)")
	if err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// If a turn is cancelled while the journal writes, the turn ends at once, and its handlers
// do not run.
//
// SPEC J-04
func TestCancelWhileTheStartIsRecorded(t *testing.T) {
	t.Parallel()
	for _, opts := range []hook.Options{{Kind: hook.HandlerCommand}, {Kind: hook.HandlerCommand, Concurrent: true}} {
		journal := newCountingJournal()
		ctx, cancel := context.WithCancel(t.Context())
		journal.during = cancel
		var ran trail
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gatePhase.On("a", ran.gate("a"), &opts), gatePhase.On("b", ran.gate("b"), &opts))
		s := rt.Snapshot()
		out, err := gatePhase.Dispatch(ctx, s, write)
		if !errors.Is(err, context.Canceled) || out.Output.Severity != hook.SeverityDeny {
			t.Errorf("got %v, %v; want a denial and the cancel", out.Output, err)
		}
		same(t, "handlers that ran", ran.all(), nil)
		equal(t, "runs", brief(s.Take()), "a:skipped(hook.canceled) b:skipped(hook.canceled)")
		if err := s.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// SPEC J-01, J-04: a hook that runs again after a resume has the next attempt number. A
// hook that has not yet run on this input has attempt number 1.
func TestAttemptsOfAResumedTurn(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := newCountingJournal()
		live := func(resumes string, turn string, tools ...string) string {
			rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
				observePhase.On("c", says(remark{}), outside),
				observePhase.On("f", says(remark{}), &hook.Options{Execution: hook.FireAndRecord}),
				observePhase.On("go", says(remark{}), nil),
				observePhase.On("unmatched", says(remark{}), &hook.Options{Kind: hook.HandlerCommand, Match: hook.Match{Tools: []string{"x"}}}))
			s := rt.Snapshot()
			if resumes != "" {
				s.Resumes(resumes)
			}
			for _, tool := range tools {
				dispatch(t, observePhase, s, call{tool: tool, scope: &hook.Scope{Session: "s1", Turn: turn, Step: 2}})
			}
			var got []string
			for _, r := range s.Take() { // the process is killed before these records are stored
				got = append(got, fmt.Sprint(r.Subscription, r.Attempt))
			}
			if err := errors.Join(rt.Drain(t.Context()), s.Release(t.Context())); err != nil {
				t.Fatal(err)
			}
			return strings.Join(got, " ")
		}
		equal(t, "the first time, once for each input and once again", live("", "t1", "read", "write", "write"), "c1 f1 go0 c1 f1 go0 c1 f1 go0")
		equal(t, "resumed: an input that was seen and a new one", live("t1", "t1", "write", "new"), "c2 f2 go0 c1 f1 go0")
		equal(t, "resumed again", live("t1", "t1", "read", "write", "new"), "c2 f2 go0 c3 f3 go0 c2 f2 go0")
		equal(t, "another turn, in a snapshot that resumes the first", live("t1", "t2", "write"), "c1 f1 go0")
		equal(t, "a turn that nobody says was resumed", live("", "t1", "write"), "c1 f1 go0")
	})
}

// The reference of a hook's input can change when the turn is resumed. An interrupted run
// in the same step still counts as an attempt.
//
// SPEC J-01
func TestAttemptAfterAnInterruptionIsHigher(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	left := hook.Run{
		ID: "left", Subscription: "a", Phase: gatePhase.Name(), Scope: *write.scope, State: hook.Interrupted, Attempt: 3, Key: "hook:other",
		Started: time.Now(),
	}
	if err := journal.Append(t.Context(), []hook.Run{left}); err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gateNamed("a", outside), gateNamed("b", outside))
	s := snapshot(t, rt)
	s.Resumes("t1")
	dispatch(t, gatePhase, s, write)
	next := write
	next.scope = &hook.Scope{Session: "s1", Turn: "t1", Step: 3}
	dispatch(t, gatePhase, s, next)
	var got []int
	for _, r := range s.Take() {
		got = append(got, r.Attempt)
	}
	same(t, "attempts of a and b, and in the next step", got, []int{4, 1, 1, 1})
}

// A skipped run does not count as an attempt.
//
// SPEC J-01
func TestSkippedRunIsNoAttempt(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	for _, want := range []string{"a1 b1", "a2 b1"} {
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gatePhase.On("a", says(deny("no")), outside), gateNamed("b", outside))
		s := rt.Snapshot()
		s.Resumes("t1")
		dispatch(t, gatePhase, s, write)
		runs := s.Take()
		equal(t, "attempts", fmt.Sprint("a", runs[0].Attempt, " b", runs[1].Attempt), want)
		if err := errors.Join(s.Record(t.Context(), runs), s.Release(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

// SPEC J-03, J-04: when the jobs of a handler are stored, its record still says started. So
// the run can end as failed if the queue reports an error.
func TestJobsOfAHandlerWithEvidence(t *testing.T) {
	t.Parallel()
	for _, broken := range []bool{false, true} {
		journal := newCountingJournal()
		queue := &doubtfulQueue{MemoryQueue: hook.NewMemoryQueue(journal, nil), broken: broken}
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: queue},
			observePhase.On("a", says(remark{Jobs: []hook.Job{{Handler: "mail", Key: "k"}}}), outside))
		if _, err := rt.InstallJobs(hook.JobHandler{Name: "mail", Run: func(context.Context, hook.Job) ([]hook.Audit, error) { return nil, nil }}); err != nil {
			t.Fatal(err)
		}
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		want := "a:completed"
		if broken {
			want = "a:failed(journal.unavailable)"
		}
		equal(t, "while the turn waits for its commit", brief(list(t, journal, hook.Filter{})), "a:started")
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "in the end", brief(list(t, journal, hook.Filter{})), want)
	}
}

// doubtfulQueue stores everything. If broken is set, it then reports an error.
type doubtfulQueue struct {
	*hook.MemoryQueue

	broken bool
}

func (q *doubtfulQueue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	err := q.MemoryQueue.Enqueue(ctx, asked, jobs)
	if q.broken {
		err = errors.Join(err, errDisk)
	}
	return err
}

// SPEC J-04, H-02: an inherited hook has a started record too, in the journal of the child.
func TestInheritedHandlerLeavesEvidence(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	parent := newRuntime(t, nil, gateNamed("a", outside))
	s := inherit(t, newRuntime(t, &hook.RuntimeOptions{Journal: journal}), parent)
	dispatch(t, gatePhase, s, write)
	same(t, "commits", journal.written(), []string{"a:started"})
}

// SPEC J-04: Explain calls handlers and writes no record.
func TestExplanationLeavesNoEvidence(t *testing.T) {
	t.Parallel()
	journal := newCountingJournal()
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gateNamed("a", outside))
	if _, err := gatePhase.Explain(t.Context(), snapshot(t, rt), write); err != nil {
		t.Fatal(err)
	}
	same(t, "commits", journal.written(), nil)
}

// The time that the journal takes is not part of the handler's time, neither in the record
// nor for the timeout.
//
// SPEC J-01
func TestJournalsTimeIsNotTheHandlers(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]hook.Options{
		"blocking":   {},
		"timed":      {Timeout: time.Second},
		"concurrent": {Concurrent: true, Timeout: time.Second},
		"deadline":   {Execution: hook.Deadline, Timeout: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				opts.Kind = hook.HandlerCommand
				journal := newCountingJournal()
				journal.during = func() { time.Sleep(time.Minute) }
				rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
					gatePhase.On("a", does[verdict](func(context.Context, call) { time.Sleep(time.Millisecond) }), &opts))
				s := rt.Snapshot()
				dispatch(t, gatePhase, s, write)
				runs := s.Take()
				equal(t, "run", brief(runs), "a:completed")
				equal(t, "latency", time.Duration(runs[0].Latency), time.Millisecond)
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
