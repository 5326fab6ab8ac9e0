// Package growthtest distinguishes linear from quadratic work.
package growthtest

import (
	"math"
	"testing"
)

const (
	// limit is the maximum factor for four times the input. Linear work takes 4 times as
	// long, quadratic work 16 times. The limit leaves room for caches and a busy machine.
	limit = 9
	// floor is the least time for n items, in seconds. Linear uses it instead of a
	// shorter time, which would depend more on the machine than on the work.
	floor = 0.04
	// rounds is how often a measurement is repeated before it counts as a failure. Linear
	// compares the shortest time of each size, because other load only makes the work
	// slower.
	rounds = 3
)

// Linear fails the test if work on 4n items takes far more than four times as long as work
// on n items. It compares processor times of this process and checks no absolute time. The
// test must not run in parallel with others.
//
// prepare makes an input of the given size, and returns the work on that input. Choose n so
// large that quadratic work on n items would take at least 50 milliseconds.
func Linear(t testing.TB, n int, prepare func(n int) (work func())) {
	t.Helper()
	small, large := math.Inf(1), math.Inf(1)
	for range rounds {
		small = min(small, took(prepare(n)), took(prepare(n)))
		large = min(large, took(prepare(4*n)))
		if large <= limit*max(small, floor) {
			return
		}
	}
	t.Errorf("%d items take %.3f s and %d take %.3f s, %.1f times as long: the work is not linear", n, small, 4*n, large, large/small)
}

func took(work func()) float64 {
	began := now()
	work()
	return (now() - began).Seconds()
}
