package hook_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/belay-run/belay/hook"
)

var errDisk = errors.New("no space left on device")

// fragileJournal is a journal that can be broken and repaired.
type fragileJournal struct {
	mu     sync.Mutex
	broken bool
	runs   []hook.Run
}

func (j *fragileJournal) setBroken(broken bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = broken
}

// Append stores all runs or none.
func (j *fragileJournal) Append(ctx context.Context, runs []hook.Run) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken {
		return errDisk
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j.runs = append(j.runs, runs...)
	return nil
}

func (j *fragileJournal) all() []hook.Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.runs)
}

// SPEC J-03
func TestJournalThatCannotBeWrittenFailsGatesClosed(t *testing.T) {
	t.Parallel()
	for _, failure := range []hook.Failure{hook.Closed, hook.Open} { // The failure mode does not matter, because no handler failed.
		journal := &fragileJournal{broken: true}
		var asked trail
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			gatePhase.On("a", asked.gate("a"), &hook.Options{Failure: failure}),
			collectPhase.On("c", says(note("kept")), nil))
		s := snapshot(t, rt)
		dispatch(t, gatePhase, s, write)
		if err := s.Flush(context.Background()); !isJournalError(err) {
			t.Fatalf("flush: got %v, want a *JournalError that wraps the journal's", err)
		}
		for range 2 {
			out, err := gatePhase.Dispatch(context.Background(), s, write)
			if !isJournalError(err) || out.Output.Severity != hook.SeverityDeny || out.By != "" {
				t.Errorf("gate: got %v by %q, %v; want a denial and a *JournalError", out.Output, out.By, err)
			}
			if _, err := collectPhase.Dispatch(context.Background(), s, write); !isJournalError(err) {
				t.Errorf("collect: got %v, want a *JournalError", err)
			}
		}
		equal(t, "asked while nothing can be recorded", len(asked.all()), 1)
		journal.setBroken(false)
		equal(t, "verdict once it works again", dispatch(t, gatePhase, s, write).Output.Severity, hook.SeverityPass)
		if err := s.Flush(context.Background()); err != nil {
			t.Fatal(err)
		}
		equal(t, "runs", len(journal.all()), 2)
	}
}

func isJournalError(err error) bool {
	_, ok := errors.AsType[*hook.JournalError](err)
	return ok && errors.Is(err, errDisk)
}

// Even if the journal fails many times, every run is recorded once and in order.
//
// SPEC J-03
func TestNothingIsLostWhileTheJournalIsBroken(t *testing.T) {
	t.Parallel()
	journal := &fragileJournal{}
	var ran []string
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal})
	const n = 7
	for i := range n {
		id := fmt.Sprint("n", i)
		install(t, rt, gatePhase.On(id, does[verdict](func(context.Context, call) { ran = append(ran, id) }), nil))
	}
	s := rt.Snapshot()
	for i := range 300 { // Far more runs than a chunk holds in memory.
		journal.setBroken(i%50 >= 20)
		_, _ = gatePhase.Dispatch(context.Background(), s, write)
		if i%35 == 0 {
			_ = s.Flush(context.Background())
		}
	}
	journal.setBroken(true)
	if err := s.Release(context.Background()); !isJournalError(err) {
		t.Errorf("release: got %v, want a *JournalError", err)
	}
	journal.setBroken(false)
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	var recorded []string
	ids := map[string]bool{}
	for _, r := range journal.all() {
		recorded = append(recorded, r.Subscription)
		ids[r.ID] = true
	}
	same(t, "recorded", recorded, ran)
	equal(t, "distinct ids", len(ids), len(ran))
	if len(ran) < 100*n {
		t.Errorf("only %d runs took place: the test proves little", len(ran))
	}
}

// The final record of a detached run is not lost either.
//
// SPEC J-03
func TestEndOfAFiredRunIsNotLostWhileTheJournalIsBroken(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		journal := &fragileJournal{}
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			observePhase.On("fired", func(context.Context, call) (remark, error) {
				journal.setBroken(true) // the journal has the started record, and rejects the final one
				return remarks("seen"), nil
			}, &hook.Options{Execution: hook.FireAndRecord}))
		s := rt.Snapshot()
		dispatch(t, observePhase, s, write)
		_ = rt.Drain(t.Context())
		journal.setBroken(false)
		if err := errors.Join(s.Release(t.Context()), rt.Drain(t.Context())); err != nil {
			t.Fatal(err)
		}
		var states []hook.State
		for _, r := range journal.all() {
			states = append(states, r.State)
		}
		if !slices.Contains(states, hook.Completed) {
			t.Errorf("states on record: %v, the end is lost", states)
		}
	})
}

// stubbornJournal is a journal in which another process has settled the runs of one
// subscription.
type stubbornJournal struct {
	fragileJournal

	settled string
}

// Append rejects a batch that contains a settled run.
func (j *stubbornJournal) Append(ctx context.Context, runs []hook.Run) error {
	for _, r := range runs {
		if r.Subscription == j.settled {
			return hook.ErrSettled
		}
	}
	return j.fragileJournal.Append(ctx, runs)
}

// If another process has settled a run, the other records are still written, and no gate
// denies.
//
// SPEC J-03, J-04
func TestSettledRunDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	journal := &stubbornJournal{settled: "b"}
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gateNamed("a", nil), gateNamed("b", nil), gateNamed("c", nil))
	s := rt.Snapshot()
	dispatch(t, gatePhase, s, write)
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	dispatch(t, gatePhase, s, write)
	if err := s.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	equal(t, "runs", brief(journal.all()), "a:completed c:completed a:completed c:completed")
}

// A caller may take the records and store them itself, in one commit with its own data.
// Each record is returned once.
//
// SPEC J-03
func TestTakeHandsOverRecords(t *testing.T) {
	t.Parallel()
	journal := &fragileJournal{}
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gatePhase.On("a", says(verdict{}), nil))
	s := rt.Snapshot()
	dispatch(t, gatePhase, s, write)
	dispatch(t, gatePhase, s, write)
	equal(t, "taken", len(s.Take()), 2)
	equal(t, "taken again", brief(s.Take()), "")
	dispatch(t, gatePhase, s, write)
	for range 2 { // A second Release does nothing.
		if err := s.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "written", brief(journal.all()), "a:completed")
}

// If a caller took records and could not store them, Record writes them to the journal. If
// another process has settled a run, the other records are still written. Records that the
// journal rejects are retried.
//
// SPEC J-03, J-04
func TestRecordsThatCouldNotBeStoredAreKept(t *testing.T) {
	t.Parallel()
	journal := &stubbornJournal{settled: "b"}
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, gateNamed("a", nil), gateNamed("b", nil), gateNamed("c", nil))
	s := rt.Snapshot()
	dispatch(t, gatePhase, s, write)
	journal.setBroken(true)
	if err := s.Record(t.Context(), s.Take()); !isJournalError(err) {
		t.Errorf("while the journal is broken: got %v, want a *JournalError", err)
	}
	journal.setBroken(false)
	if err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "runs", brief(journal.all()), "a:completed c:completed")
}

// It is no error if another process has settled a run, at any position in a batch. The
// other runs are written.
//
// SPEC J-03, J-04
func TestRecordWithASettledRun(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]string{{"b"}, {"a", "b"}, {"b", "c"}, {"a", "b", "c"}} {
		journal := &stubbornJournal{settled: "b"}
		var subs []hook.Subscription
		for _, id := range ids {
			subs = append(subs, gateNamed(id, nil))
		}
		s := newRuntime(t, &hook.RuntimeOptions{Journal: journal}, subs...).Snapshot()
		dispatch(t, gatePhase, s, write)
		if err := s.Record(t.Context(), s.Take()); err != nil {
			t.Errorf("%q: %v", ids, err)
		}
		equal(t, fmt.Sprintf("on record of %q", ids), len(journal.all()), len(ids)-1)
		if err := s.Release(t.Context()); err != nil {
			t.Errorf("%q: release: %v", ids, err)
		}
	}
}

// Every run has its own id, whether its record is taken or written to the journal.
//
// SPEC J-01
func TestRunIDsAreUnique(t *testing.T) {
	t.Parallel()
	for _, journal := range []hook.Journal{hook.NewMemoryJournal(1), &fragileJournal{}} {
		rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal},
			gatePhase.On("a", says(verdict{}), nil), gatePhase.On("b", says(deny("no")), nil), gatePhase.On("c", says(verdict{}), nil),
			gatePhase.On("unmatched", says(verdict{}), &hook.Options{Match: hook.Match{Tools: []string{"read"}}}))
		s, other := snapshot(t, rt), snapshot(t, rt)
		ids := map[string]bool{}
		for i := range 200 {
			dispatch(t, gatePhase, s, write)
			dispatch(t, gatePhase, other, write)
			for _, r := range append(s.Take(), other.Take()...) {
				if ids[r.ID] || r.ID == "" {
					t.Fatalf("id %q came twice", r.ID)
				}
				ids[r.ID] = true
			}
			if i%3 == 0 {
				dispatch(t, gatePhase, s, write)
				if err := s.Flush(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
		}
		equal(t, "ids", len(ids), 1200)
	}
}

// SPEC J-03
func TestReleasedSnapshotRefuses(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gatePhase.On("a", says(verdict{}), nil))
	s := rt.Snapshot()
	if err := s.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	out, err := gatePhase.Dispatch(context.Background(), s, write)
	if !errors.Is(err, hook.ErrReleased) || out.Output.Severity != hook.SeverityDeny {
		t.Errorf("got %v, %v; want a denial and ErrReleased, because nobody would record it", out.Output, err)
	}
}

// SPEC J-01
func TestMemoryJournalKeepsTheNewest(t *testing.T) {
	t.Parallel()
	journal := hook.NewMemoryJournal(5)
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal})
	for i := range 4 {
		install(t, rt, gatePhase.On(fmt.Sprint("n", i), says(verdict{}), nil))
	}
	s := rt.Snapshot()
	dispatch(t, gatePhase, s, write)
	dispatch(t, gatePhase, s, write)
	if err := s.Release(context.Background()); err != nil {
		t.Fatal(err)
	}
	equal(t, "kept", brief(list(t, journal, hook.Filter{})), "n3:completed n0:completed n1:completed n2:completed n3:completed")
	equal(t, "dropped", journal.Dropped(), 3)
	equal(t, "limited", len(list(t, journal, hook.Filter{Limit: 2})), 2)
}

// SPEC J-01
func TestFilter(t *testing.T) {
	t.Parallel()
	run := hook.Run{
		Subscription: "a", Phase: "p", State: hook.Failed, Job: "j", Scope: hook.Scope{Session: "s", Turn: "t"},
	}
	for _, test := range []struct {
		rule   string
		filter hook.Filter
		want   bool
	}{
		{"everything", hook.Filter{}, true},
		{"the session", hook.Filter{Session: "s"}, true},
		{"another session", hook.Filter{Session: "x"}, false},
		{"another turn", hook.Filter{Turn: "x"}, false},
		{"another phase", hook.Filter{Phase: "x"}, false},
		{"another subscription", hook.Filter{Subscription: "x"}, false},
		{"another job", hook.Filter{Job: "x"}, false},
		{"one of the states", hook.Filter{States: []hook.State{hook.Skipped, hook.Failed}}, true},
		{"none of the states", hook.Filter{States: []hook.State{hook.Skipped}}, false},
		{"the first moment counts", hook.Filter{Since: run.Started}, true},
		{"the last moment does not", hook.Filter{Until: run.Started.Add(1)}, true},
		{"all of them", hook.Filter{Session: "s", Turn: "t", Phase: "p", Subscription: "a", Job: "j", States: []hook.State{hook.Failed}}, true},
	} {
		equal(t, test.rule, test.filter.Match(run), test.want)
	}
}
