// Package growthtest distinguishes linear from quadratic work.
package growthtest

import (
	"math"
	"testing"
)

const (
	// limit is the maximum factor for four times the input. Linear work takes 4 times as
	// long, quadratic work 16 times; the limit leaves room for caches and a busy machine.
	limit = 9
	// floor is the shortest time that counts, in seconds: shorter times measure the
	// machine, not the work.
	floor = 0.04
	// rounds is how often a measurement is repeated before it counts as a failure. The shortest
	// time of each size is compared, because other load only makes the work take longer.
	rounds = 3
)

// Linear fails the test if work on 4n items takes far more than four times as long as work
// on n items. It compares processor times of this process and asserts no absolute time.
// The test must not run in parallel with others. Prepare makes the input of a size, and
// returns the work on it. N should be so large that quadratic work on n items would take 50
// milliseconds or more.
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
