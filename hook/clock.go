package hook

import (
	"math"
	"time"
)

// Clock tells the time and wakes up. It exists for tests: hooktest has one that
// a test moves by hand. The default is the machine's clock.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed, unless stop is
	// called first. stop reports whether it kept f from being called.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// now returns the time since the runtime was made, in nanoseconds. The
// machine's clock is read without its wall time, which is half the price.
func (rt *Runtime) now() int64 {
	if rt.clock == nil {
		return int64(time.Since(rt.base))
	}
	return int64(rt.clock.Now().Sub(rt.base))
}

// later is the time d after at, or the end of time.
func later(at int64, d time.Duration) int64 {
	if sum := at + int64(d); sum >= at {
		return sum
	}
	return math.MaxInt64
}

// wall turns a time of now into a time of day.
func (rt *Runtime) wall(at int64) time.Time {
	return rt.base.Add(time.Duration(at + rt.drift.Load())).Round(0)
}

// setWall corrects what now cannot see: the machine slept, or its clock was
// set. It is done once a turn.
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

// after calls f once d has passed.
func (rt *Runtime) after(d time.Duration, f func()) (stop func() bool) {
	if rt.clock == nil {
		return time.AfterFunc(d, f).Stop
	}
	return rt.clock.AfterFunc(d, f)
}
