package hooktest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/hook"
	"github.com/belay-run/belay/hook/codes"
	"github.com/belay-run/belay/hook/hooktest"
	"github.com/belay-run/belay/internal/probetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestClockFiresInOrderOfTime(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	var fired []string // no lock: Advance calls one function at a time
	for _, d := range []time.Duration{3 * time.Second, time.Second, 2 * time.Second, time.Second} {
		clock.AfterFunc(d, func() {
			fired = append(fired, fmt.Sprintf("%s at %s", d, clock.Now().Format("05")))
		})
	}
	clock.Advance(2 * time.Second)
	if want := []string{"1s at 01", "1s at 01", "2s at 02"}; !slices.Equal(fired, want) {
		t.Errorf("fired %q, want %q", fired, want)
	}
	clock.Advance(time.Minute)
	if len(fired) != 4 || !clock.Now().Equal(noon.Add(62*time.Second)) {
		t.Errorf("fired %q by %s, want all four by 12:01:02", fired, clock.Now())
	}
}

func TestClockKeepsTheOrderOfOneMoment(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	var fired []int
	for i := range 20 {
		clock.AfterFunc(time.Second, func() { fired = append(fired, i) })
	}
	clock.Advance(time.Second)
	if len(fired) != 20 || !slices.IsSorted(fired) {
		t.Errorf("fired in the order %v, want that of setting", fired)
	}
}

func TestClockFiresWhatIsSetMeanwhile(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	var fired []time.Time
	var tick func()
	tick = func() {
		fired = append(fired, clock.Now())
		clock.AfterFunc(time.Second, tick)
	}
	clock.AfterFunc(time.Second, tick)
	clock.Advance(3500 * time.Millisecond)
	if len(fired) != 3 || !fired[2].Equal(noon.Add(3*time.Second)) {
		t.Errorf("fired at %v, want every second", fired)
	}
	if got := clock.Now(); !got.Equal(noon.Add(3500 * time.Millisecond)) {
		t.Errorf("the clock shows %s", got)
	}
}

func TestClockStops(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	fired := 0
	stop := clock.AfterFunc(time.Second, func() { fired++ })
	if !stop() || stop() {
		t.Error("stop reports that it kept f from being called the first time alone")
	}
	late := clock.AfterFunc(time.Second, func() { fired++ })
	clock.Advance(time.Second)
	if fired != 1 || late() {
		t.Errorf("fired %d times, want once, and stop to come too late", fired)
	}
}

func TestClockCallsWhatIsDueAtOnce(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	called := make(chan struct{}, 2)
	for _, d := range []time.Duration{0, -time.Second} {
		if stop := clock.AfterFunc(d, func() { called <- struct{}{} }); stop() {
			t.Errorf("stop kept from being called what was due %s ago", -d)
		}
	}
	<-called
	<-called
}

func TestClockDoesNotGoBack(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the clock was moved back")
		}
	}()
	hooktest.NewClock(noon).Advance(-1)
}

func TestClockSurvivesAFunctionThatExits(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	clock.AfterFunc(time.Second, runtime.Goexit)
	clock.Advance(time.Second) // Advance must return although the function ends its goroutine
}

func TestWaitTimersIsASignal(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	done := make(chan struct{})
	for i := range 3 {
		go func() { // ends when the clock is advanced
			fired := make(chan struct{})
			clock.AfterFunc(time.Duration(i+1)*time.Second, func() { close(fired) })
			<-fired
			done <- struct{}{}
		}()
	}
	clock.WaitTimers(t, 3)
	clock.Advance(3 * time.Second)
	for range 3 {
		<-done
	}
	clock.WaitTimers(t, 0)
}

func TestWaitTimersGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		clock := hooktest.NewClock(noon)
		clock.AfterFunc(time.Second, func() {})
		probetest.Run(t, func(t testing.TB) { clock.WaitTimers(t, 2) }).WantFailure(t, "1 functions wait", "want 2")
	})
}

func TestClockIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	clock := hooktest.NewClock(noon)
	var fired, kept atomic.Int64
	var work sync.WaitGroup
	const each = 200
	for range 4 {
		work.Go(func() {
			for i := range each {
				stop := clock.AfterFunc(time.Duration(i+1)*time.Millisecond, func() { fired.Add(1) })
				if i%3 == 0 && stop() {
					kept.Add(1)
				}
			}
		})
		work.Go(func() {
			for range each {
				clock.Advance(time.Millisecond)
			}
		})
	}
	work.Wait()
	clock.Advance(time.Hour)
	if got := fired.Load() + kept.Load(); got != 4*each {
		t.Errorf("%d functions fired and %d were stopped, want %d in all", fired.Load(), kept.Load(), 4*each)
	}
}

// SPEC H-09, H-11
func TestClockMovesARuntimesTimeouts(t *testing.T) {
	t.Parallel()
	for _, execution := range []hook.Execution{hook.Blocking, hook.Deadline, hook.FireAndRecord, hook.Background} {
		t.Run(execution.String(), func(t *testing.T) {
			t.Parallel()
			clock := hooktest.NewClock(noon)
			sub := uploaded.On("slow", hooktest.Hangs[file, remark](), &hook.Options{Execution: execution, Timeout: time.Hour})
			trial := hooktest.Try(t, uploaded, sub, file{name: "a"}, &hooktest.Options{
				Runtime: hook.RuntimeOptions{Clock: clock},
				During: func(context.CancelCauseFunc) {
					clock.WaitTimers(t, 1)
					clock.Advance(time.Hour)
				},
			})
			trial.State(hook.TimedOut)
			trial.Code(codes.Timeout)
			if run, _ := trial.Run(); run.Latency != hook.Latency(time.Hour) || !run.Started.Equal(noon) {
				t.Errorf("the run took %s from %s, want an hour from noon", run.Latency, run.Started)
			}
		})
	}
}
