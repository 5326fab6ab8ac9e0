package hook_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
)

func gateNamed(id string, o *hook.Options) hook.Subscription {
	return gatePhase.On(id, says(verdict{}), o)
}

// SPEC H-04
func TestCloseTakesBackExactlyWhatWasAdded(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil, gateNamed("before", nil))
	lease := install(t, rt, gateNamed("a", nil), gateNamed("b", nil), collectPhase.On("a", says(findings{}), nil))
	install(t, rt, gateNamed("later", nil))
	same(t, "plan", planOf(t, rt, gatePhase), []string{"a", "b", "before", "later"})
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "plan of the gate", planOf(t, rt, gatePhase), []string{"before", "later"})
	same(t, "plan of the collect phase", planOf(t, rt, collectPhase), []string{})
	equal(t, "subscriptions", len(rt.Subscriptions()), 2)
}

// SPEC H-04
func TestCloseTwiceIsHarmless(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	lease := install(t, rt, gateNamed("a", nil))
	for range 2 {
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
	}
	install(t, rt, gateNamed("a", nil)) // The id can be used again.
	if err := lease.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "plan", planOf(t, rt, gatePhase), []string{"a"}) // Closing the old lease again does not remove the new subscription.
}

// SPEC H-04
func TestClosingWhatOthersNeedIsRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule   string
		others []hook.Subscription
		needed []string // the subscriptions that need the lease; empty: the lease can be closed
	}{
		{"no subscription is ordered relative to it", []hook.Subscription{gateNamed("x", nil)}, nil},
		{"one comes after it", []hook.Subscription{gateNamed("x", &hook.Options{After: []string{"a"}})}, []string{"x"}},
		{"one comes before it", []hook.Subscription{gateNamed("x", &hook.Options{Before: []string{"a"}})}, []string{"x"}},
		{
			"every dependent is named, by id",
			[]hook.Subscription{gateNamed("y", &hook.Options{After: []string{"a"}}), gateNamed("x", &hook.Options{Before: []string{"a"}})},
			[]string{"x", "y"},
		},
		{"a disabled subscription does not count", []hook.Subscription{gateNamed("x", &hook.Options{After: []string{"a"}, Disabled: true})}, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			rt := newRuntime(t, nil)
			spare := install(t, rt, gateNamed("spare", nil))
			lease := install(t, rt, gateNamed("a", nil), gateNamed("b", nil))
			others := install(t, rt, test.others...)
			before := planOf(t, rt, gatePhase)
			err := lease.Close()
			if test.needed == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			inUse, ok := errors.AsType[*hook.InUseError](err)
			if !ok || inUse.Subscription != "a" || inUse.Phase != "test.gate" || !slices.Equal(inUse.Dependents, test.needed) {
				t.Fatalf("close: got %v, want an *InUseError: a is needed by %v", err, test.needed)
			}
			same(t, "plan after the refusal", planOf(t, rt, gatePhase), before)
			if err := hook.CloseAll(lease, others, nil, spare, lease); err != nil {
				t.Fatalf("close them all: %v", err)
			}
			same(t, "plan after closing all", planOf(t, rt, gatePhase), []string{})
			if err := lease.Close(); err != nil {
				t.Errorf("close after CloseAll: %v", err)
			}
		})
	}
}

// SPEC H-04
func TestCloseAll(t *testing.T) {
	t.Parallel()
	if err := hook.CloseAll(); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if err := hook.CloseAll(nil, nil); err != nil {
		t.Errorf("of nil: %v", err)
	}
	one, two := newRuntime(t, nil), newRuntime(t, nil)
	a, b := install(t, one, gateNamed("a", nil)), install(t, two, gateNamed("b", nil))
	if err := hook.CloseAll(a, b); err == nil {
		t.Error("leases of two runtimes cannot be closed in one step, and were")
	}
	same(t, "plan", planOf(t, one, gatePhase), []string{"a"})
}

// SPEC H-04
func TestReplaceIsOneStep(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	old := install(t, rt, gateNamed("a", nil), gateNamed("b", nil))
	install(t, rt, gateNamed("x", &hook.Options{After: []string{"a"}}))

	// If the new subscriptions cannot be installed, the old ones stay.
	if _, err := old.Replace(gateNamed("a", nil), gateNamed("bad id", nil)); err == nil {
		t.Fatal("a bad id was accepted")
	}
	_, err := old.Replace(gateNamed("c", nil))
	if _, ok := errors.AsType[*hook.InUseError](err); !ok {
		t.Fatalf("leaving out what another needs: got %v, want an *InUseError", err)
	}
	_, err = old.Replace(gateNamed("a", &hook.Options{Disabled: true}))
	if _, ok := errors.AsType[*hook.DependencyError](err); !ok {
		t.Fatalf("disabling what another needs: got %v, want a *DependencyError", err)
	}
	same(t, "plan after refusals", planOf(t, rt, gatePhase), []string{"a", "b", "x"})

	next, err := old.Replace(gatePhase.On("a", says(deny("new")), nil), gateNamed("c", nil))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "plan", planOf(t, rt, gatePhase), []string{"a", "c", "x"})
	equal(t, "who answers", dispatch(t, gatePhase, snapshot(t, rt), write).Output.Reason, "new")
	if _, err := old.Replace(gateNamed("d", nil)); !errors.Is(err, hook.ErrClosed) {
		t.Errorf("replacing a closed lease: got %v, want ErrClosed", err)
	}
	if err := old.Close(); err != nil {
		t.Errorf("closing the replaced lease: %v", err)
	}
	same(t, "plan after closing the old lease again", planOf(t, rt, gatePhase), []string{"a", "c", "x"})
	if _, err := next.Replace(gateNamed("a", nil)); err != nil {
		t.Errorf("replacing again: %v", err)
	}
}

// At every moment there is exactly one of the old and the new subscription.
//
// SPEC H-04, H-14
func TestReplaceLeavesNoGap(t *testing.T) {
	t.Parallel()
	watchdog(t)
	rt := newRuntime(t, nil)
	lease := install(t, rt, gatePhase.On("guard", says(deny("0")), nil))
	stop := make(chan struct{})
	passed := make(chan int)
	go func() {
		n := 0
		defer func() { passed <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			s := rt.Snapshot()
			out, err := gatePhase.Dispatch(context.Background(), s, write)
			if err != nil || out.Output.Severity != hook.SeverityDeny {
				n++
			}
			_ = s.Release(context.Background())
		}
	}()
	for range 300 {
		next, err := lease.Replace(gatePhase.On("guard", says(deny("1")), nil))
		if err != nil {
			t.Error(err)
			break
		}
		lease = next
	}
	close(stop)
	equal(t, "dispatches that found the gate open", <-passed, 0)
}

// SPEC H-04
func TestCloseNeverWaitsAndDrainDoes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt := newRuntime(t, nil)
		lease := install(t, rt, gateNamed("a", nil))
		turn := rt.Snapshot()
		began := time.Now()
		if err := lease.Close(); err != nil {
			t.Fatal(err)
		}
		equal(t, "time that Close took", time.Since(began), 0)
		equal(t, "the turn still has it", gatePhase.Active(turn), true)
		unrelated := rt.Snapshot() // It began after the close, so Drain does not wait for it.
		defer func() { _ = unrelated.Release(t.Context()) }()
		go func() {
			time.Sleep(time.Minute)
			_ = turn.Release(context.Background())
		}()
		if err := lease.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time that Drain took", time.Since(began), time.Minute)
		if err := lease.Drain(t.Context()); err != nil {
			t.Fatalf("draining twice: %v", err)
		}
	})
}

// SPEC H-04
func TestDrainGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt := newRuntime(t, nil)
		lease := install(t, rt, gateNamed("a", nil))
		turn := rt.Snapshot()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the operator lost patience"))
		defer cancel()
		err := lease.Drain(ctx)
		if err == nil || !strings.Contains(err.Error(), "lost patience") {
			t.Errorf("got %v, want the cause of the context", err)
		}
		equal(t, "it was closed all the same", len(planOf(t, rt, gatePhase)), 0)
		if err := turn.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := lease.Drain(t.Context()); err != nil {
			t.Errorf("after the release: %v", err)
		}
	})
}

// SPEC H-04
func TestDrainWaitsForEveryHolder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rule string
		hold func(t *testing.T, rt *hook.Runtime) (lease *hook.Lease, turn *hook.Snapshot)
	}{
		{"a turn that began after others were installed", func(t *testing.T, rt *hook.Runtime) (*hook.Lease, *hook.Snapshot) {
			lease := install(t, rt, gateNamed("a", nil))
			install(t, rt, gateNamed("other", nil))
			return lease, rt.Snapshot()
		}},
		{"a turn that took the gate in with Refresh", func(t *testing.T, rt *hook.Runtime) (*hook.Lease, *hook.Snapshot) {
			turn := rt.Snapshot()
			lease := install(t, rt, gateNamed("a", nil))
			turn.Refresh()
			return lease, turn
		}},
		{"a turn that refreshed since", func(t *testing.T, rt *hook.Runtime) (*hook.Lease, *hook.Snapshot) {
			lease := install(t, rt, gateNamed("a", nil))
			turn := rt.Snapshot()
			install(t, rt, gateNamed("other", nil))
			turn.Refresh()
			return lease, turn
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				rt := newRuntime(t, nil)
				lease, turn := test.hold(t, rt)
				drained := make(chan error, 1)
				go func() { drained <- lease.Drain(t.Context()) }()
				synctest.Wait()
				select {
				case err := <-drained:
					t.Fatalf("drained while it was held: %v", err)
				default:
				}
				if err := turn.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if err := <-drained; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An abandoned run still uses its subscription. So Drain waits until the run returns, even
// if its turn is over.
//
// SPEC H-04, H-11
func TestDrainWaitsForAbandonedRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt := newRuntime(t, nil)
		lease := install(t, rt, gatePhase.On("stuck", does[verdict](func(context.Context, call) {
			time.Sleep(time.Hour)
		}), &hook.Options{Execution: hook.Deadline, Timeout: time.Second, Failure: hook.Open}))
		s := rt.Snapshot()
		began := time.Now()
		dispatch(t, gatePhase, s, write)
		if err := s.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time that the turn took", time.Since(began), time.Second)
		if err := lease.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time until it was drained", time.Since(began), time.Hour)
	})
}

// SPEC H-04
func TestDrainIsRefusedLikeClose(t *testing.T) {
	t.Parallel()
	rt := newRuntime(t, nil)
	lease := install(t, rt, gateNamed("a", nil))
	install(t, rt, gateNamed("b", &hook.Options{After: []string{"a"}}))
	err := lease.Drain(context.Background())
	if _, ok := errors.AsType[*hook.InUseError](err); !ok {
		t.Errorf("got %v, want an *InUseError", err)
	}
	same(t, "plan", planOf(t, rt, gatePhase), []string{"a", "b"})
}

// SPEC H-04, H-14
func TestDrainWaitsForADispatchThatOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				o := w.opts
				o.Timeout = time.Hour
				rt := newRuntime(t, nil)
				lease := install(t, rt, gatePhase.On("slow", does[verdict](func(context.Context, call) { time.Sleep(time.Minute) }), &o))
				s := rt.Snapshot()
				began := time.Now()
				go func() { _, _ = gatePhase.Dispatch(context.Background(), s, write) }()
				synctest.Wait()
				if err := s.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := lease.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				equal(t, "time until it was drained", time.Since(began), time.Minute)
			})
		})
	}
}

// Releasing a snapshot twice must not release the hold of another snapshot.
//
// SPEC H-04
func TestReleasedTurnReleasesNobodyElse(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		rt := newRuntime(t, nil)
		lease := install(t, rt, gateNamed("a", nil))
		over, underWay := rt.Snapshot(), rt.Snapshot()
		for range 3 {
			if err := over.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			_, _ = gatePhase.Dispatch(t.Context(), over, write)
		}
		go func() {
			time.Sleep(time.Minute)
			_ = underWay.Release(context.Background())
		}()
		began := time.Now()
		if err := lease.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		equal(t, "time until it was drained", time.Since(began), time.Minute)
	})
}
