package hooktest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/hook"
)

// Clock is a [hook.Clock] that a test moves by hand. So a timeout of an hour takes no time,
// and happens exactly when the test advances the clock. A Clock is safe for concurrent use.
// If two goroutines advance it at the same time, the later of the two times counts.
type Clock struct {
	mu      sync.Mutex
	now     time.Time
	timers  []*timer      // sorted by time; timers of the same time stay in the order in which they were set
	changed chan struct{} // closed and replaced when a timer is set
}

type timer struct {
	at time.Time
	f  func()
}

// NewClock makes a clock that shows start until a test advances it.
func NewClock(start time.Time) *Clock {
	return &Clock{now: start, changed: make(chan struct{})}
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc calls f in its own goroutine when the clock has advanced by d, unless stop is
// called first. If d is not positive, AfterFunc calls f at once.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	if d <= 0 {
		go f() // like time.AfterFunc, does not wait for f
		return func() bool { return false }
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	set := &timer{at: c.now.Add(d), f: f}
	place, _ := slices.BinarySearchFunc(c.timers, set, func(a, b *timer) int {
		if a.at.After(b.at) {
			return 1
		}
		return -1 // insert it after timers of the same time
	})
	c.timers = slices.Insert(c.timers, place, set)
	close(c.changed)
	c.changed = make(chan struct{})
	return func() bool { return c.remove(set) }
}

// remove removes a timer and reports whether it was still waiting.
func (c *Clock) remove(set *timer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.timers, set)
	if i < 0 {
		return false
	}
	c.timers = slices.Delete(c.timers, i, i+1)
	return true
}

// Advance moves the clock by d. It calls the functions that become due, one after the other
// in order of time. Each runs in its own goroutine while the clock shows its time. If such
// a function sets another function for the same period, Advance calls that one too. Advance
// returns when all of them have returned.
//
// A function that waits for the goroutine that calls Advance blocks forever. Advance panics
// if d is negative.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("hooktest: a Clock cannot be moved back")
	}
	target := c.Now().Add(d)
	for {
		due := c.next(target)
		if due == nil {
			return
		}
		returned := make(chan struct{})
		go func() { // ends before Advance returns
			defer close(returned)
			due.f()
		}()
		<-returned
	}
}

// next removes and returns the first timer that is due by target, and moves the clock to
// its time. If no timer is due, next moves the clock to target and returns nil.
func (c *Clock) next(target time.Time) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].at.After(target) {
		if target.After(c.now) {
			c.now = target
		}
		return nil
	}
	due := c.timers[0]
	c.timers = slices.Delete(c.timers, 0, 1)
	if due.at.After(c.now) {
		c.now = due.at
	}
	return due
}

// WaitTimers waits until at least n functions wait for the clock. Call it before
// [Clock.Advance], instead of a sleep, to be sure that the code under test has started its
// timers. The test fails if this takes more than 10 seconds.
func (c *Clock) WaitTimers(t testing.TB, n int) {
	t.Helper()
	patience := time.NewTimer(10 * time.Second)
	defer patience.Stop()
	for {
		c.mu.Lock()
		waiting, changed := len(c.timers), c.changed
		c.mu.Unlock()
		if waiting >= n {
			return
		}
		select {
		case <-changed:
		case <-patience.C:
			t.Fatalf("hooktest: %d functions wait for the clock after 10 s, want %d: the code under test has not reached its timeout", waiting, n)
		}
	}
}

var _ hook.Clock = (*Clock)(nil)
