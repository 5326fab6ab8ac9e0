package hook

import (
	"math"
	"time"
)

// Clock returns the time and starts timers. It exists for tests: hooktest has a clock that
// a test moves by hand. The default is the machine's clock.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f in its own goroutine after d, unless stop is called first. stop
	// reports whether it prevented the call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// now returns the time since the runtime was made, in nanoseconds. It reads only the
// machine's monotonic clock, which costs half as much as time.Now.
func (rt *Runtime) now() int64 {
	if rt.clock == nil {
		return int64(time.Since(rt.base))
	}
	return int64(rt.clock.Now().Sub(rt.base))
}

// later returns at plus d, or the maximum time if the sum overflows.
func later(at int64, d time.Duration) int64 {
	if sum := at + int64(d); sum >= at {
		return sum
	}
	return math.MaxInt64
}

// wall converts a result of now into a time of day.
func (rt *Runtime) wall(at int64) time.Time {
	return rt.base.Add(time.Duration(at + rt.drift.Load())).Round(0)
}

// setWall corrects the offset between now and the time of day: the machine may have slept,
// or its clock may have been set. It runs once for each snapshot.
func (rt *Runtime) setWall() {
	if rt.clock != nil {
		return
	}
	wall := time.Now()
	drift := wall.Round(0).Sub(rt.base.Round(0)) - wall.Sub(rt.base)
	if diff := drift - time.Duration(rt.drift.Load()); diff.Abs() > 100*time.Millisecond {
		rt.drift.Store(int64(drift))
	}
}

// after calls f when the duration d has passed on the runtime's clock.
func (rt *Runtime) after(d time.Duration, f func()) (stop func() bool) {
	if rt.clock == nil {
		return time.AfterFunc(d, f).Stop
	}
	return rt.clock.AfterFunc(d, f)
}
