package hook_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// If a snapshot is released during a dispatch, the dispatch keeps its subscriptions until
// it ends.
//
// SPEC H-04, H-14
func TestReleaseDuringADispatch(t *testing.T) {
	t.Parallel()
	for name, another := range map[string]bool{"the only turn": false, "another turn holds it too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { releaseDuringADispatch(t, another) })
		})
	}
}

func releaseDuringADispatch(t *testing.T, another bool) {
	t.Helper()
	rt := newRuntime(t, nil)
	inside, goOn := make(chan struct{}), make(chan struct{})
	lease := install(t, rt,
		gatePhase.On("a", does[verdict](func(context.Context, call) { close(inside); <-goOn }), nil),
		gatePhase.On("b", says(verdict{}), &hook.Options{Execution: hook.Deadline, Timeout: time.Second, After: []string{"a"}}))
	released := rt.Snapshot()
	var other *hook.Snapshot
	if another {
		other = rt.Snapshot()
	}
	done := make(chan error, 1)
	go func() {
		_, err := gatePhase.Dispatch(context.Background(), released, write)
		done <- err
	}()
	<-inside
	if err := released.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	waits := func(why string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := lease.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain while %s: got %v, want it to wait", why, err)
		}
	}
	waits("the dispatch runs")
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if another {
		waits("another turn holds it")
		if err := other.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := lease.Drain(t.Context()); err != nil {
		t.Errorf("drain when nobody holds it: %v", err)
	}
}

// SPEC H-12, H-14
func TestRefreshBesideDispatches(t *testing.T) {
	t.Parallel()
	watchdog(t)
	rt := newRuntime(t, nil, gatePhase.On("a", says(verdict{}), nil))
	s := rt.Snapshot()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			if _, err := gatePhase.Dispatch(context.Background(), s, write); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 50 {
		lease := install(t, rt, gatePhase.On("b", says(verdict{}), nil))
		s.Refresh()
		if err := lease.Close(); err != nil {
			t.Error(err)
		}
	}
	<-done
	if err := s.Release(t.Context()); err != nil {
		t.Error(err)
	}
	lease := install(t, rt, gatePhase.On("c", says(deny("no")), nil))
	s.Refresh() // After its release, a snapshot does not change and holds nothing.
	if err := lease.Drain(t.Context()); err != nil {
		t.Error(err)
	}
}

// lossyQueue stores jobs and then returns an error, like a database that loses the
// connection after the commit.
type lossyQueue struct{ *hook.MemoryQueue }

func (q lossyQueue) Enqueue(ctx context.Context, asked hook.Run, jobs []hook.Job) error {
	return errors.Join(q.MemoryQueue.Enqueue(ctx, asked, jobs), errors.New("connection lost"))
}

// SPEC J-01, J-09
func TestQueueThatStoredAndSaysItDidNot(t *testing.T) {
	t.Parallel()
	journal := hook.NewMemoryJournal(64)
	rt := newRuntime(t, &hook.RuntimeOptions{Journal: journal, Queue: lossyQueue{hook.NewMemoryQueue(journal, nil)}},
		observePhase.On("queued", says(remark{}), &hook.Options{Execution: hook.Background}))
	s := rt.Snapshot()
	dispatch(t, observePhase, s, write)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatalf("one run that is settled otherwise must not poison the turn: %v", err)
	}
	dispatch(t, observePhase, s, call{tool: "other", scope: write.scope})
	if err := s.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, r := range list(t, journal, hook.Filter{}) {
		if seen[r.ID] {
			t.Errorf("two runs have the id %s", r.ID)
		}
		seen[r.ID] = true
	}
	equal(t, "runs: what the queue stored, and the failures", len(seen), 4)
}
